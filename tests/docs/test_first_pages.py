"""The first pages that a newcomer reads: their output is real, their figures are measured, and their lists complete."""

import csv
import os
import re
import runpy
import subprocess
import sysconfig
import tomllib
from pathlib import Path

import pytest
from support.pages import ROOT, blocks, output_of, read, section
from support.shell import clean_environment, run_here

pytest_plugins = ["pytester"]

README = (ROOT / "README.md").read_text()


def without_ports(text: str) -> list[str]:
    return [re.sub(r":\d{4,5}\b(?!\d*Z)", ":PORT", line).rstrip() for line in text.strip().splitlines()]


def test_the_page_shows_what_the_demo_prints() -> None:
    [shown] = blocks(section(read("installation.md"), "What the demo shows"), "text")
    result = run_here("followup", "demo", environment=clean_environment())
    assert result.returncode == 0
    assert without_ports(shown) == without_ports(result.stdout)


@pytest.mark.parametrize("downloads", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_the_commands_of_the_readme_work_in_an_empty_folder(tmp_path: Path, downloads: bool) -> None:
    """They run as written and in order; ADDRESS is this repository. By day, what this environment has is there."""
    *commands, tests = blocks(README, "shell")
    assert "nox" in tests
    first, _, second = README.partition("```python\n")
    assert [*blocks(first, "shell"), *blocks(second, "shell")] == [*commands, tests]
    assert blocks(first, "shell") == commands[:1]  # the first commands stand before the first test
    [test, *_] = blocks(README, "python")
    (tmp_path / "ADDRESS").symlink_to(ROOT)
    save = f"cat > test_reminders.py <<'END'\n{test}END\n"
    script = "\n".join([commands[0], save, *commands[1:]])
    python = sysconfig.get_config_var("BINDIR")  # not that of a virtual environment
    environment = {"HOME": str(tmp_path), "PATH": f"{python}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    environment |= {"PIP_NO_COMPILE": "1"}  # which takes longer than the rest
    if not downloads:
        ours = f"echo {sysconfig.get_path('purelib')} > $(echo .venv/lib/python*/site-packages)/required.pth\n"
        ours += 'pytest() { python -m pytest "$@"; }\n'
        script = script.replace("activate\n", f"activate\n{ours}", 1)
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "That was the whole cycle." in done.stdout
    assert "1 passed" in done.stdout


def test_the_report_of_the_failing_test_says_why(pytester: pytest.Pytester) -> None:
    [test, *_] = blocks(README, "python")
    opts_out = "    followup_service.update_patient(patient.id, opted_out=True)\n"
    pytester.makepyfile(test.replace("    followup_service.advance", f"{opts_out}    followup_service.advance"))
    options = 'def followup_options():\n    return {"start_time": "2030-01-01T09:00:00Z"}\n'
    pytester.makeconftest(f"import pytest\n\n\n@pytest.fixture\n{options}")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio")
    ids = re.compile(r"_\w{8,24}")
    printed = ids.sub("_ID", result.stdout.str())
    [shown] = blocks(README, "text")
    assert ids.sub("_ID", shown) in printed


PAGES = [ROOT / "README.md", *(each for each in (ROOT / "docs").rglob("*.md") if "_build" not in each.parts)]


def test_no_page_and_no_message_installs_what_the_package_index_does_not_have() -> None:
    """A package of this name there would be somebody else's."""
    by_name = re.compile(r"(?:pip install|pipx|uvx?|uv add)\b[^\n(]*?[ '\"]followup\b")
    code = [each for folder in ("sdk", "mockserver") for each in (ROOT / folder).rglob("*.py")]
    found = [(each.name, line) for each in [*PAGES, *code] for line in by_name.findall(each.read_text())]
    assert found == [("_version.py", "pip install 'followup")]  # after the first release
    assert [each.name for each in PAGES if "example.github.io" in each.read_text()] == []


def test_after_the_first_release_the_pages_install_the_package_by_its_name(tmp_path: Path) -> None:
    released = runpy.run_path(str(ROOT / "tools/installation.py"))["released"]
    pages = {each.name: released(each.read_text(), "https://docs.example/") for each in PAGES}
    for name, text in pages.items():
        assert not re.search(r"ADDRESS|first release[^s,]|'\.\[|\.followup|in your clone", text), name
    assert blocks(pages["README.md"], "shell")[0] == (
        "python3 -m venv .venv\n. .venv/bin/activate\npython -m pip install 'followup[all]' pytest\nfollowup demo\n"
    )
    assert "\n                         https://docs.example/tutorial.html\n" in pages["installation.md"]
    assert "- run: python -m pip install 'followup[mockserver,cli]'" in pages["ci.md"]


def test_the_readme_names_the_command_that_runs_all_checks() -> None:
    """The continuous integration runs this line, so without it nothing would be checked."""
    assert "```shell\npython -m pip install nox && nox\n```" in README


def test_the_doors_of_the_readme_are_those_of_the_documents() -> None:
    """From each page behind them, the navigation reaches every other one (test_site.py)."""
    door = re.compile(r"^- \*\*\[(.+)\]\((?:docs/)?(.+)\)\*\*", re.MULTILINE)
    assert door.findall(README) == door.findall(read("index.md"))
    assert len(door.findall(README)) == 4
    assert "](docs/index.md)" in README


WHICH_MOCK = "docs/concepts/which-mock.md"


@pytest.mark.parametrize(
    ("page", "claim", "measured", "column", "unit"),
    [
        ("README.md", r"five calls and two webhooks takes ([\d.]+) ms", "written for respx", "ours", 1e3),
        ("README.md", r"Listing 100 patients takes ([\d.]+) ms", "stripe, customers.list", "ours", 1e3),
        ("docs/benchmarks.md", r"Listing 100 patients takes ([\d.]+) ms", "stripe, customers.list", "ours", 1e3),
        ("docs/benchmarks.md", r"five calls and two webhooks takes ([\d.]+) ms", "written for respx", "ours", 1e3),
        (WHICH_MOCK, r"httpx\. - A new mock takes ([\d.]+) ms", "and its end; MockServer", "ours", 1e3),
        (WHICH_MOCK, r"reach it\. A new mock takes ([\d.]+) ms", "and its end; MockServer", "theirs", 1e3),
        (WHICH_MOCK, r"It starts in ([\d.]+) s", "followup-mock serve, to its first response", "ours", 1e6),
    ],
)
def test_the_figures_in_sentences_are_measured(page: str, claim: str, measured: str, column: str, unit: float) -> None:
    [figure] = re.findall(claim, " ".join((ROOT / page).read_text().split()))
    with (ROOT / "benchmarks/figures.csv").open() as file:
        [row] = [each for each in csv.DictReader(file) if measured in f"{each['name']}; {each['alternative']}"]
    assert round(float(row[column]) / unit, len(figure.partition(".")[2])) == float(figure)


def test_tables_chart_and_topics_are_those_of_the_stored_figures() -> None:
    code = (
        "import page, plot, runpy; figures = page.load(); text = page.PAGE.read_text();"
        "assert page.with_tables(text, figures) == text, 'tables';"
        "drawn = plot.drawn([each for found in figures.values() for each in found]);"
        "assert page.CHART.read_text() == drawn, 'chart';"
        "assert len(plot.SHOWN) == drawn.count('<circle '), 'chart has every row';"
        "names = runpy.run_path('__main__.py', run_name='benchmarks')['BENCHMARKS'];"
        "topics = [name for names in page.TOPICS.values() for name in names];"
        "assert sorted(topics) == sorted(names), set(topics) ^ set(names)"
    )
    output_of(code, ROOT / "benchmarks")


def test_the_rates_of_planted_bugs_are_those_that_were_measured() -> None:
    code = (
        "import rates; rows = rates.load(); text = rates.PAGE.read_text(); assert {*rows} <= {*rates.BUGS};"
        "assert rates.with_tables(text, rows) == text, 'tables';"
        "print(len(rows), min(int(each['found']) for each in rows.values()))"
    )
    bugs, least = output_of(code, ROOT / "benchmarks").split()
    rate = "all of 30 seeds" if least == "30" else f"at least {least} of 30 seeds"
    for page in (README, read("planted-bugs.md")):
        assert re.search(rf"\b{bugs} (\[)?planted bugs.* {rate}", " ".join(page.split()))


def test_every_extra_is_described() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    described = section(read("installation.md"), "Choose the extras")
    assert set(re.findall(r"^\| `(\w+)` \|", described, re.MULTILINE)) == set(extras)
