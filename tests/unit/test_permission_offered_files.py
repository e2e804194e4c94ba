"""What "Allow always" is offered for: nothing that runs a file which the agent can rewrite."""

import pytest

from pynchy.calls import ToolCall
from pynchy.permissions.rules import derive

CWD = "/no/such/app"
# @ is a file that the agent can change.
RUNS = (
    "/lib64/ld-linux-x86-64.so.2 @",
    "/lib/ld-linux.so.2 @",
    "/lib/ld-musl-x86_64.so.1 @",
    "/lib/ld-2.31.so @",
    "xterm -e @",
    "uxterm -e @",
    "konsole --separate -e @",
    "hyperfine @",
    "hyperfine --prepare=@ ls",
    "tini -- @",
    "dumb-init @",
    "nodemon @",
    "dotnet @",
    "dotnet exec @",
    "pm2 start @",
    "forever @",
    "zig run @",
    "pandoc --filter @ y",
    "pandoc --filter=@ y",
    "pandoc -F@ y",
    "pandoc --lua-filter=@ y",
    "mytool @",
    "mytool --plugin=@",
    "mytool --plugin @ x",
    "mytool -p@",
    "mytool a,@",
    "docker compose -f @ up",
    "npm install @",
    "pip install @",
    "cargo install --path @",
    "ansible-playbook @",
    "terraform plan -chdir=@",
    "make -f @",
    "gradle -b @ test",
    "eslint --config @ x",
    "eslint --rulesdir=@ x",
)
FILES = ("./x.sh", "../x.sh", "./x", "../x", f"{CWD}/x", f"{CWD}/../app/x", "/no//such/./app/x.py")


@pytest.mark.parametrize("text", RUNS)
def test_allow_always_was_offered_for_a_file_that_the_agent_can_rewrite(text: str) -> None:
    for file in FILES:
        line = text.replace("@", file)
        assert derive(ToolCall("claude", "Bash", {"command": line}, CWD)) is None, line


@pytest.mark.parametrize(
    "line",
    [
        *(
            "nodemon x",
            "dotnet x.dll",
            "pm2 start x.js",
            "zig run x.zig",
            "cargo run",
            "dotnet run",
        ),
        *(
            "cargo +nightly run",
            "cargo r",
            "cargo +nightly r",
            "cargo watch -x run",
            "swift run",
            "stack run",
            "zig x",
        ),
        *("cabal run x", "sbt run", "mix run x.exs", "gradle -b x.gradle test", "mytool x.py"),
        *("mytool bin/x", "hyperfine bin/x", "mytool --plugin=x.so", "mytool a.jar", "tini x"),
        *("mytool sub/x.sh", "xterm -e x", "hyperfine x", "konsole -e x", "forever x.js"),
        *("dart run", "crystal run x.cr", "flutter run", "nim r x.nim", "dub run", "vlang run x.v"),
    ],
)
def test_allow_always_was_offered_for_programs_that_run_what_is_named(line: str) -> None:
    assert derive(ToolCall("claude", "Bash", {"command": line}, CWD)) is None


@pytest.mark.parametrize(
    "line",
    [
        *("ls ./src", "cat ./a.py", "grep -rn x ./src", "git add ./x.py", "jq . ./x"),
        *("go test ./...", "go build ./cmd/x", "pytest ./tests/x.py", "python -m pytest ./tests"),
        *(
            "make",
            "make test",
            "npm run build",
            "cargo test",
            "npm install @types/node",
            "just lint",
        ),
        *("mvn test", "gradle build", "tox -e py311", "dotnet test", "dotnet build", "ninja all"),
        *("docker pull library/redis", "mytool", "mytool x", "mytool --flag=x", "mytool -p 3"),
        *("ruff check ./src", "mypy src/a.py", "eslint src/x.js", "git push origin feature/x"),
        *(
            "mytool /usr/share/x",
            "mytool https://example.org/x",
            "tox",
            "cp ./a ./b",
            "pre-commit run",
        ),
    ],
)
def test_allow_always_is_still_offered_for_what_reads_builds_or_tests(line: str) -> None:
    assert derive(ToolCall("claude", "Bash", {"command": line}, CWD)) is not None
