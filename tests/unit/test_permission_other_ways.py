"""What a `*` refuses in one spelling it refuses in every other, and so does what is offered."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pynchy.calls import ToolCall
from pynchy.model import GroupName
from pynchy.permissions.guards import guards_of
from pynchy.permissions.rules import derive, judge
from pynchy.rule import Effect, Origin, Rule

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
CWD = "/no/such/app"


def said(line: str, pattern: str, origin: Origin = Origin.SETTINGS, cwd: str = CWD) -> str:
    rule = Rule("r", Effect.ALLOW, pattern, GroupName("team"), "ana", NOW, origin=origin)
    call = ToolCall("claude", "Bash", {"command": line}, cwd)
    return judge([rule], call, "s1", NOW).effect.value


def offered(line: str) -> str | None:
    return derive(ToolCall("claude", "Bash", {"command": line}, CWD))


HOOK = """
git notes add -m '#!/bin/sh' -m 'touch pwned'
git update-index --add --cacheinfo 100755,@,pre-commit
git checkout-index --prefix=.git/hooks/ pre-commit
git merge-file .git/config base mine
git read-tree --index-output=.git/hooks/x HEAD
git apply --unsafe-paths hook.patch
git mv -f pre-commit .git/hooks/pre-commit
git commit -q --allow-empty -m x
git status
"""


def test_git_with_a_star_wrote_a_hook_and_ran_it(tmp_path: Path) -> None:
    def run(line: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    script = "#!/bin/sh\ntouch pwned\n"
    (tmp_path / "pre-commit").write_text(script)
    (tmp_path / "pre-commit").chmod(0o755)
    run("git init -q . && git config user.name a && git config user.email a@b.c && git add .")
    run("git commit -qm first && cp .git/config base && cp base mine")
    with (tmp_path / "mine").open("a") as mine:
        mine.write('[core]\n\tfsmonitor = "touch pwned; false"\n')
    added = "".join(f"+{line}\n" for line in script.splitlines())
    (tmp_path / "hook.patch").write_text(
        "diff --git a/.git/hooks/pre-commit b/.git/hooks/pre-commit\nnew file mode 100755\n"
        f"--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1,2 @@\n{added}"
    )

    for line in HOOK.strip().splitlines():
        spelled = line.replace("@", run("git rev-parse HEAD:pre-commit"))
        if said(spelled, "Bash(git *)", cwd=str(tmp_path)) == "allow":
            run(spelled)

    assert not (tmp_path / "pwned").exists()


IN_GIT = (
    *(".git/hooks/x", ".git", "./.git/config", "a/.git/hooks/x", ".GIT/hooks/x", ".Git", "git~1/x"),
    *("--prefix=.git/hooks/", "--x=.git", ":(top).git/x", ":!.git", "HEAD:.git/x", "-o.git/x"),
    *(":/.git/config", "repo.git/hooks/x", "x,.git", ".git.", ".git:x"),
)


@pytest.mark.parametrize("word", IN_GIT)
def test_git_with_a_star_was_let_into_its_own_folder(word: str) -> None:
    known = guards_of("git")[0].looks.split()

    assert len(known) > 50
    assert {said(f"git {one} '{word}'", "Bash(git *)") for one in known} == {"ask"}
    assert said(f"git merge-file '{word}' base mine", "Bash(git merge-file *)") == "ask"


@pytest.mark.parametrize(
    "line",
    [
        *("git log -- .gitignore .github/x", "git show HEAD:.gitattributes", "git add .gitmodules"),
        *("git fetch https://example.org/x.git", "git commit -m 'Ignore .git in the index'"),
        *("git grep -F x", "git log -F --grep=x", "git branch -t x", "git checkout -t origin/x"),
        *("git tag v1 -m x", "git merge -m x main", "git apply x.patch", "git diff --patch"),
    ],
)
def test_git_with_a_star_does_what_it_did(line: str) -> None:
    assert said(line, "Bash(git *)") == "allow"


@pytest.mark.parametrize(
    ("program", "rest"),
    [
        *(
            ("git", rest)
            for rest in (
                "commit -F .env",
                "commit -qF.env",
                "tag v1 -F .env",
                "notes add -F .env",
                "merge -F .env x",
                "commit-tree -F .env HEAD",
                "commit -t .env",
                "format-patch --signature-file=.env -1",
                "read-tree --index-output=x HEAD",
                "repack --filter-to=x",
                "repack --expire-to=x",
                "apply --unsafe-paths x",
                "apply --unsafe x",
                "apply --build-fake-ancestor=x y",
                "update-ref hooks/x HEAD",
                "symbolic-ref hooks/x refs/heads/x",
            )
        ),
        *(
            ("pandoc", rest)
            for rest in (
                "-t w.lua+smart x.md",
                "-f r.lua-smart x.md",
                "--to=w.lua+a-b x.md",
                "-t w.LUA x.md",
                "--data-dir=x y.md",
            )
        ),
        *(
            ("pip", rest)
            for rest in (
                "index versions x -i http://evil",
                "list -i http://evil",
                "list -oi http://evil",
                "list -f http://evil",
                "index versions x -fhttp://evil",
            )
        ),
        ("file", "-Z x"),
        ("man", "-X x"),
        ("bat", "--lessopen x"),
        ("podman", "ps -r"),
        ("podman", "ps -c x"),
        ("robot", "-b x tests"),
    ],
)
def test_what_a_star_refused_was_let_in_by_another_spelling(program: str, rest: str) -> None:
    assert said(f"{program} {rest}", f"Bash({program} *)") == "ask"


@pytest.mark.parametrize(
    ("program", "rest"),
    [
        *(("pip", rest) for rest in ("show -f x", "list -o", "freeze -l", "index versions x")),
        *(("pandoc", rest) for rest in ("-t html x.md", "-f markdown+smart x.md", "evalua.md")),
        ("robot", "-t x tests"),
        ("podman", "ps -a"),
    ],
)
def test_what_a_star_let_in_for_work_is_let_in(program: str, rest: str) -> None:
    assert said(f"{program} {rest}", f"Bash({program} *)") == "allow"


@pytest.mark.parametrize(
    "line",
    [
        *(
            "python3 -m venv .v",
            "python3 -m pip list",
            "python3 -m http.server",
            "python -m mypy x",
        ),
        *("python3.11 -m json.tool", "pypy3 -m x", "coverage run -m x", "python3 -m flask run"),
        *("uvicorn app:app", "gunicorn app", "gunicorn -w 4 app.wsgi", "celery -A x worker"),
        *("flask --app x routes", "hypercorn x:y", "streamlit hello", "django-admin check"),
        *("mytool app:app", "mytool serve pkg.mod:make_app()", "rq worker", "torchrun x"),
    ],
)
def test_allow_always_was_offered_for_a_module_that_the_agent_can_write(line: str) -> None:
    assert offered(line) is None


@pytest.mark.parametrize("line", ["python3 -m pytest -q", "python -m unittest", "python3 -m tox"])
def test_allow_always_is_offered_for_what_tests_a_project(line: str) -> None:
    assert offered(line) == f"Bash({line}) in {CWD}"


def test_git_add_of_a_card_put_secrets_where_git_diff_shows_them() -> None:
    for line in (
        "git add .env",
        "git add -- .env.local",
        "git add config/.npmrc",
        "git add '.en*'",
    ):
        assert said(line, "Bash(git add *)", Origin.CARD) == "ask", line
    for line in ("git add .", "git add -A", "git add src/x.py", "git add -u -- src"):
        assert said(line, "Bash(git add *)", Origin.CARD) == "allow", line


def test_unit_files_with_secrets_in_them_were_shown_by_a_rule_of_a_card() -> None:
    assert said("systemctl cat other.service", "Bash(systemctl cat *)", Origin.CARD) == "ask"
    assert "*" not in (offered("systemctl cat x.service") or "")


@pytest.mark.parametrize(
    "line",
    [
        r"find . -exec sh -c 'git log -1 &>made' \;",
        *("find . -execdir bash5 -c x +", r"find . -type f -ok env x \;", "gfind . -exec sudo x +"),
        *(
            "fd x -x sh -c y",
            "fd x -Xsh",
            "fdfind --exec bash",
            "fd --exec=sh",
            "fd --exec-batch sh",
        ),
    ],
)
def test_find_ran_a_shell_that_a_rule_for_every_command_does_not_cover(line: str) -> None:
    assert said(line, "Bash") == "ask"
    assert said(line, "Bash(*)") == "ask"
    assert said(line, f"Bash({line})") == "allow"


@pytest.mark.parametrize("line", [r"find . -exec grep -l x {} \;", "find . -name sh", "fd sh"])
def test_find_runs_other_programs_by_a_rule_for_every_command(line: str) -> None:
    assert said(line.replace("{}", "'{}'"), "Bash") == "allow"
