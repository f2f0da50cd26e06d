"""The service under load, and killed under load, in a short form of bench/service.py."""

from service import killed, under_load


def test_a_few_seconds_of_load_lose_nothing(tmp_path):
    found = under_load(nodes=500, rate=40, seconds=2, folder=tmp_path)
    assert (
        found["asked"],
        found["answered"],
        found["errors"],
        found["lost"],
        found["exit_code"],
    ) == (80, 80, [], 0, 0)


def test_killed_under_load_every_answer_is_in_the_log(tmp_path):
    found = killed(nodes=500, rate=100, after=1.0, folder=tmp_path)
    assert found["answered"] > 0
    assert found["lost"] == 0
