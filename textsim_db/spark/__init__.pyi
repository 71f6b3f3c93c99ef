from textsim_db.spark.columns import join_key as join_key, split_key as split_key
from textsim_db.spark.pair_frames import (
    Candidates as Candidates,
    find_candidates as find_candidates,
)
from textsim_db.spark.passage_pairs import shared_passages as shared_passages
from textsim_db.spark.stored_frames import read as read, write as write
