-- The corpus of `textsim mcp facts`: each user of the agent is a scope.
SELECT textsim.create_corpus('facts', shingle => 'char:4', threshold => 0.4, recall => 1, is_unique => true,
    unique_from => 0.8, guards => '{numbers,negations}', scoped => true);
