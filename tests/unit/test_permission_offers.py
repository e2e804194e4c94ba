"""What a `*` covers that was made on a card: listed words of listed subcommands, and no other."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pynchy.calls import ToolCall
from pynchy.model import GroupName
from pynchy.permissions.guards import why_refused
from pynchy.permissions.offers import OFFERS, Offer
from pynchy.permissions.rules import derive, judge
from pynchy.rule import Effect, Origin, Rule

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
CWD = "/no/such/app"


def bash(line: str) -> ToolCall:
    return ToolCall("claude", "Bash", {"command": line}, CWD)


def is_allowed(line: str, pattern: str, origin: Origin = Origin.CARD) -> bool:
    rule = Rule("r1", Effect.ALLOW, pattern, GroupName("team"), "ana", NOW, origin=origin)
    return judge([rule], bash(line), "s1", NOW).effect is Effect.ALLOW


def offered(line: str) -> str:
    pattern = derive(bash(line))
    assert pattern is not None
    return pattern


# What a person allows for good, and what the agent then runs.
SLIPS = {
    "pip freeze": [
        "pip freeze --log-file=/home/u/.bashrc",
        "pip freeze --local-log=/home/u/.bashrc",
        "pip freeze --local-log /home/u/.bashrc",
        "pip freeze --local-l=/home/u/.bashrc",
        "pip freeze --log=/x",
        "pip freeze --lo=/x",
        "pip freeze -r /etc/passwd",
        "pip freeze x",
    ],
    "pip list": [
        "pip list --log-file=/x",
        "pip list -o -i http://127.0.0.1:9/",
        "pip list -ohttp://127.0.0.1:9/",
        "pip list --outdated --pypi-url=http://127.0.0.1:9/",
        "pip list --forma json",
        "pip list --format=x",
        "pip list --path=/x",
        "pip list --unknown",
    ],
    "pip show x": [
        "pip show '$(touch /tmp/pwned)'",
        "pip show x --cache-dir=/x",
        "pip show --log-f=/x x",
    ],
    "pip3 check": ["pip3 check --log-file=/x", "pip3 check --local-log=/x"],
    "kubectl get pods": [
        "kubectl get sEcrets -A -oyaml",
        "kubectl get all,sEcret -o yaml",
        "kubectl get pods -o go-template-file=/home/u/.ssh/id_rsa",
        "kubectl get pods -ogo-template-file=/etc/passwd",
        "kubectl get pods -o=jsonpath-file=/etc/passwd",
        "kubectl get pods -o custom-columns-file=/etc/passwd",
        "kubectl get pods --output=templatefile=/etc/passwd",
        "kubectl get pods -o go-template --template=/etc/passwd",
        "kubectl get pods --user=admin",
        "kubectl get pods --as=admin",
        "kubectl get pods --as-group=system:masters",
        "kubectl get pods --kuberc=evil.yaml",
        "kubectl get pods --v=10",
        "kubectl get pods -v10",
        "kubectl get -R -f x",
        "kubectl get --raw=/api/v1/secrets",
        "kubectl get pods -- x",
        "kubectl get pods -o yaml",
        "kubectl get pods -o json",
        "kubectl get pods -oyaml",
    ],
    "kubectl describe pod x": ["kubectl describe SECRETS", "kubectl describe -f x.yaml"],
    "kubectl logs x": ["kubectl logs x --pod-running-timeout=1s", "kubectl logs x --token=y"],
    "git commit -m x": [
        "git commit -F/srv/data/key.pem",
        "git commit -aF/srv/data/key.pem",
        "git commit -F key.pem",
        "git commit -m x -t/srv/a",
        "git commit -m x -ta",
        "git commit -m x -S",
        "git commit -m x -Skey",
        "git commit -m x --trailer a=b",
        "git commit -m x --no-verify",
        "git commit -m x -n",
        "git commit -m -F",
        "git commit -mx",
        "git commit --mess=x",
    ],
    "git grep x": [
        "git grep -f/srv/data/key.pem",
        "git grep -f key.pem",
        "git grep -nf/srv/x",
        "git grep -Oless x",
        "git grep x --no-ind",
        "git grep --threads=9 x",
    ],
    "git blame x": [
        "git blame -S/srv/x y",
        "git blame --ignore-revs-file=x y",
        "git blame -Sx y",
        "git blame --abbrev .env",
    ],
    "git log": [
        "git log --format=%GG",
        "git log --format='%h %G?'",
        "git log --format=%-GG",
        "git log --format=%+GG",
        "git log --format='% GG'",
        "git log --stdin",
        "git log --onel",
        "git log --format x",
        "git log -p --format .env",
        "git log --pretty oneline --unified .env",
        "git log --oneline=x",
        "git log --unknown",
        "git log -p5x",
        "git log -Oorder",
        "git log -",
    ],
    "git diff": ["git diff --color=x", "git diff -l5", "git diff --no-index a b", "git diff ''"],
    "git add x": ["git add -e", "git add -i", "git add -p", "git add -f .env", "git add -fA"],
    "git cat-file -p HEAD": ["git cat-file --batch", "git cat-file --batch-command"],
    "cargo fmt": [
        "cargo fmt -- --print-config default /home/u/.bashrc",
        "cargo fmt -- --config-path=/tmp/x",
        "cargo fmt -- /home/u/x.rs",
        "cargo fmt --",
        "cargo fmt x",
        "cargo fmt --manifest-path=x",
    ],
    "cargo test": [
        "cargo test --target evil.json",
        "cargo test --lockfile-path=x",
        "cargo test --config=x",
        "cargo test -- --logfile=/x",
        "cargo test -Zx",
        "cargo test --target-dir /x",
        "cargo test --profile x",
        "cargo test /x",
    ],
    "cargo clippy": ["cargo clippy -- -Clinker=x", "cargo clippy -- --codegen linker=x"],
    "cargo metadata": ["cargo metadata --format-version=2", "cargo metadata -C x"],
    "go build ./...": [
        "go build -debug-actiongraph=/home/u/.bashrc .",
        "go build -debug-trace=/home/u/.bashrc .",
        "go build --debug-trace /x .",
        "go build -debug-runtime-trace=/x .",
        "go build -o=/x",
        "go build -toolexec=x",
        "go build -buildmode=plugin",
        "go build /tmp/evil.go",
        "go build ../evil",
        "go build evil.example/x@latest",
        "go build -vx",
    ],
    "go test ./...": [
        "go test -debug-trace=/x .",
        "go test -args -x",
        "go test -test.run=x",
        "go test -fuzz=x",
        "go test -outputdir=x",
        "go test -c",
        "go test -exec x",
        "go test -- -x",
    ],
    "go list ./...": ["go list -m evil.example/x@latest", "go list -export ./..."],
    "podman info": [
        "podman info --runtime=/srv/app/evil",
        "podman info --conmon=/srv/app/evil",
        "podman info --url=ssh://evil/x",
        "podman info --storage-opt=overlay.mount_program=/x",
        "podman info --out=/home/u/.bashrc",
        "podman info x",
    ],
    "podman ps": ["podman ps --url=ssh://evil/x", "podman ps -aq", "podman ps -r"],
    "npm view x": [
        "npm view git+https://e/x",
        "npm view http://127.0.0.1:1/x",
        "npm view owner/repo",
        "npm view ./x",
        "npm view x.tgz",
        "npm view x@file:y",
        "npm view x@..",
        "npm view x@.",
        "npm view x@.x",
        "npm view @a/x@..",
        "npm view x --registry=http://evil",
        "npm view x -- y",
        "npm view x --jso",
    ],
    "systemctl status x": [
        "systemctl status -Hevil x",
        "systemctl status x --ho=evil",
        "systemctl status x --root=/x",
        "systemctl status x -M y",
        "systemctl status /etc/x",
    ],
    "gh pr view 1": [
        "gh pr view 1 -R evil.example/a/b",
        "gh pr view https://evil.example/a/b/pull/1",
        "gh pr view -w",
        "gh pr view 1 --json title --jq env",
        "gh pr view 1 --template=x",
    ],
    "gh repo view": ["gh repo view evil.example/a/b"],
}
TRIES = [(harmless, line) for harmless, lines in SLIPS.items() for line in lines]


@pytest.mark.parametrize(("harmless", "line"), TRIES)
def test_allow_always_on_a_harmless_command_lets_no_harmful_one_in(
    harmless: str, line: str
) -> None:
    pattern = offered(harmless)

    assert "*" in pattern
    assert is_allowed(harmless, pattern)
    assert not is_allowed(line, pattern)


@pytest.mark.parametrize(
    "line",
    [
        "git status -sb",
        "git diff --stat HEAD~1 -- src/a.py -1",
        "git log -3 --oneline --since='2 days' --format=%h origin/main..HEAD",
        "git log --author ana -n 5 -S foo --color=never",
        "git show HEAD:src/a.py",
        "git commit -am 'Say why: -x, /y'",
        "git grep -n -e foo -A3 -- src",
        "git add -A .",
        "git blame -L 1,5 x",
        "git blame -L1,5 x",
        "npm ls --depth=0",
        "npm view @types/node@^18.0.0 versions --json",
        "cargo test --release -p core some::test",
        "cargo fmt --check",
        "go test ./... -run TestX -v -count=1",
        "docker ps -a --format '{{.Names}}'",
        "docker logs --tail 50 -f web",
        "kubectl get pods,svc -n web -o wide",
        "kubectl get deploy/web -owide",
        "kubectl logs web-1 -c app --tail=9",
        "pip list --local --format=json",
        "pip show -f requests",
        "systemctl status nginx.service --no-pager",
        "gh pr list --state open -L 5",
        "gh run view 12 --log-failed",
    ],
)
def test_allow_always_goes_on_to_cover_the_usual_options(line: str) -> None:
    pattern = offered(line)

    assert pattern.split(" in ")[0].endswith(" *)")
    assert is_allowed(line, pattern)


@pytest.mark.parametrize(
    "line",
    [
        "docker top web",
        "docker inspect web",
        "podman inspect web",
        "systemctl show nginx",
        "kubectl get pods -o yaml",
        "git show HEAD:.env",
        "kubectl cluster-info dump",
        "go version",
        "git log --unknown",
        "cargo test -- --nocapture",
        "pip list --path=x",
    ],
)
def test_what_is_not_known_to_be_harmless_is_offered_as_the_exact_command(line: str) -> None:
    pattern = offered(line)

    assert pattern == f"Bash({line}) in {CWD}"
    assert is_allowed(line, pattern)
    assert not is_allowed(f"{line} x", pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "Bash(docker top *)",
        "Bash(docker inspect *)",
        "Bash(systemctl show *)",
        "Bash(ls *)",
        "Bash(git *)",
        "Bash(*)",
    ],
)
def test_an_older_rule_of_a_card_that_is_offered_no_more_covers_no_further_words(
    pattern: str,
) -> None:
    program = pattern.removeprefix("Bash(").removesuffix("*)").strip() or "ls"

    assert not is_allowed(f"{program} x", pattern)


@pytest.mark.parametrize(
    "line",
    [
        "git show HEAD:.env",
        "git show HEAD:a/.ENV.local",
        "git show :.env",
        "git show :0:.npmrc",
        "git show main:.netrc..main:x",
        "git grep -e . -- .env",
        "git grep -e . .env",
        "git grep -n . .env",
        "git grep -- .env",
        "git grep -e . -- ':(top).env'",
        "git grep -e . -- ':/.env'",
        "git grep -e . -- '.en*'",
        "git grep -e . -- '.en[v]'",
        "git grep -e . -- '.e\\nv'",
        "git grep -e . -- '?env'",
        "git grep -e . -- '*.env'",
        "git grep -e . -- '*.env*'",
        "git cat-file -p HEAD:.env",
        "git cat-file blob HEAD:id_rsa",
        "git log -p -- .env",
        "git whatchanged -p -- .env",
        "git diff HEAD~1 -- deploy/.env.production",
        "git diff HEAD:.netrc...x",
        "git blame .env",
    ],
)
def test_allow_always_on_looking_at_files_showed_secrets(line: str) -> None:
    subcommand = " ".join(line.split()[:2])

    assert not is_allowed(line, f"Bash({subcommand} *)")


@pytest.mark.parametrize(
    "line",
    [
        "git show HEAD",
        "git show HEAD:src/env.py",
        "git show main:docs/",
        "git diff HEAD~1 origin/main...HEAD -- src/a.py",
        "git grep -n foo -- '*.py' 'src/**/test_*.py'",
        "git grep -n 'def .*load_.env\\(' src",
        "git log v1.0..HEAD -- ':(top)src'",
        "git blame src/a.py",
        "git cat-file -p 'HEAD^{tree}'",
    ],
)
def test_allow_always_goes_on_to_show_files_that_are_not_sensitive(line: str) -> None:
    subcommand = " ".join(line.split()[:2])

    assert is_allowed(line, f"Bash({subcommand} *)")


def test_a_rule_of_the_settings_is_not_narrowed_to_the_list_of_cards() -> None:
    line, pattern = "git log --invert-grep --grep x --mailmap", "Bash(git log *)"

    assert is_allowed(line, pattern, Origin.SETTINGS)
    assert not is_allowed(line, pattern)


def _written(option: str) -> list[str]:
    name, has_value, values = option.replace("<n>", "3").partition("=")
    value = values.split("|")[0] or "x"
    if not name.startswith("--"):
        return [name, value] if has_value else [name]
    return [f"{name}={value}" if has_value else name]


@pytest.mark.parametrize("command", OFFERS)
def test_every_option_of_the_list_is_let_in_by_the_guards_too(command: str) -> None:
    words, offer = command.split(), OFFERS[command]

    for option in offer.options.split():
        whole = [*words, *_written(option)]
        assert why_refused(whole, len(words)) is None, option
        assert offer.lets_in(whole[len(words) :]), option


_OFFER = Offer("-a -m= -n<n> --flag --many= --few=one|two --maybe --maybe=x|y --glued=* --")


@settings(derandomize=True, max_examples=500, deadline=None)
@given(word=st.text("-=<n>amflgyewx1/.", max_size=8).map(lambda text: f"-{text}"))
def test_a_word_that_begins_with_a_dash_is_let_in_only_as_the_list_spells_it(word: str) -> None:
    listed = re.compile(
        r"-a|-n[0-9]+|--flag|--many=(?!-).*|--few=(one|two)|--maybe(=[xy])?|--glued=(?!-).*|--",
        re.DOTALL,
    )

    assert _OFFER.lets_in([word]) == bool(listed.fullmatch(word))


@pytest.mark.parametrize(
    ("words", "is_let_in"),
    [
        ("-m x", True),
        ("-m -a", False),
        ("-m --", False),
        ("-m", False),
        ("-mx", False),
        ("-m=x", False),
        ("--few one", True),
        ("--few three", False),
        ("--few=three", False),
        ("--few", False),
        ("--glued=x", True),
        ("--glued x", False),
        ("--glued *", False),
        ("--glued", False),
        ("--maybe z", True),
        ("--maybe=z", False),
        ("--many x --flag", True),
        ("--fla", False),
        ("--flag=x", False),
        ("--FLAG", False),
        ("-- -x --flog", True),
        ("-- /x", False),
        ("a/../b", False),
        ("..", False),
        ("a..b", True),
        ("-n12 -a x", True),
        ("-n1x", False),
    ],
)
def test_options_are_read_as_the_list_spells_them(words: str, is_let_in: bool) -> None:  # noqa: FBT001
    assert _OFFER.lets_in(words.split()) is is_let_in
