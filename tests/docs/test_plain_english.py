"""Sentences of the code and the docs: none is inverted, and none is a riddle."""

import pytest

from scripts.plain_english import ROOT, faults, paragraphs, project_files, sentences


@pytest.mark.more
def test_no_sentence_is_inverted_or_a_riddle() -> None:
    faulty = [
        f"{block.path.relative_to(ROOT)}:{block.line}: {sentence}"
        for block in paragraphs(project_files([]))
        for sentence in sentences(block.text)
        if faults(sentence)
    ]
    assert not faulty


def test_faults_are_seen() -> None:
    assert faults("What a worker waits out is trouble.") == ["inverted", "riddle"]
    assert faults("A worker retries when the server is lost.") == []
