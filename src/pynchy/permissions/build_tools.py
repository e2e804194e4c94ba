"""Guards of the programs that test, build and install: they run code of a folder, or of others.

What is let in behind their `*` is a list of what is known: they have aliases, plugins and options
without number.
"""

from __future__ import annotations

from pynchy.permissions.guard import Guard
from pynchy.permissions.programs import names

_PACKAGE_SCRIPTS = "runs scripts of a package"
_PACKAGES = (
    # Any setting is an option, among them which programs are run.
    Guard(
        _PACKAGE_SCRIPTS,
        only="--json --depth --long --all --omit --include --prod --production --dev --global "
        "--parseable --silent --quiet --loglevel -g -a -l -s -q",
    ),
    Guard(_PACKAGE_SCRIPTS, when="audit", within="^fix$", star=True),
    # To look at a package that is no name of the registry, it is fetched and made ready.
    Guard(
        _PACKAGE_SCRIPTS,
        when="view info show v",
        within=r"^(?!@[\w.-]+/[^/:]*$)[^-].*[/:]|\.(?:tgz|tar|tar\.gz)$",
    ),
)
# Any other may be a folder, from which cargo is run.
_TOOLCHAIN = Guard(
    "runs a program or code of one's choice",
    within=r"^\+(?!(?:stable|beta|nightly|[0-9]+(?:\.[0-9]+)+)(?:-[0-9]{4}-[0-9]{2}-[0-9]{2})?$)",
)
_CODE_OF_CHOICE = "loads code or settings of one's choice"
_TESTERS = Guard(
    _CODE_OF_CHOICE,
    only="--verbose --silent --quiet --bail --ci --color --no-color --colors --coverage "
    "--no-coverage --run --testNamePattern --grep --fgrep --runInBand --maxWorkers "
    "--passWithNoTests --listTests --onlyChanged --changedSince --detectOpenHandles --forceExit "
    "--shard --timeout --retries --filter --testsuite --group --exclude-group --fail-fast "
    "--failfast --buffer --locals --example --tag --seed --only-failures --next-failure "
    "--max-warnings --strict --pretty --no-pretty --show-error-codes --no-error-summary --check "
    "--list-different --stop-on-failure --testdox --dry-run --version --help -v -q -b -k -g -t -i",
    outside=True,
    star=True,
)
BUILD_TOOLS: dict[str, tuple[Guard, ...]] = {
    **dict.fromkeys(
        ("pytest", "py.test"),
        (
            Guard(
                _CODE_OF_CHOICE,
                short="pco",
                long="--pyargs --rootdir --confcutdir --config-file --override-ini --pdbcls "
                "--import-mode --tx --px --rsyncdir",
                # A file with more options.
                within="^@",
            ),
            Guard("runs what it reads from its input", long="--pdb --trace"),
            Guard(
                "writes or sends files",
                long="--basetemp --junitxml --junit-xml --log-file --debug --result-log "
                "--report-log --cov-report --cov-config --pastebin",
            ),
            # Any plugin has options of its own. A folder has settings, and code that is loaded.
            Guard(
                _CODE_OF_CHOICE,
                only="-q -v -x -s -l -k -m -n -ra -rA -rf -rE -rs -rx -rN --verbose --quiet "
                "--exitfirst --maxfail --lf --last-failed --ff --failed-first --nf --new-first "
                "--sw --stepwise --sw-skip --stepwise-skip --cache-show --collect-only "
                "--durations --durations-min --tb --showlocals --no-header --no-summary "
                "--disable-warnings --strict-markers --strict-config --color --code-highlight "
                "--capture --markers --fixtures --setup-show --setup-plan --runxfail --ignore "
                "--ignore-glob --deselect --doctest-modules --full-trace --show-capture "
                "--numprocesses --dist --forked --timeout --randomly-seed --reruns --count "
                "--cov-branch --no-cov --cov-append --cov-fail-under --benchmark-skip "
                "--benchmark-only --benchmark-disable --snapshot-update --asyncio-mode "
                "--hypothesis-seed --hypothesis-profile --hypothesis-show-statistics --reuse-db "
                "--create-db --log-level --log-cli-level --version --help -h",
                outside=True,
                star=True,
            ),
        ),
    ),
    **dict.fromkeys(
        names(
            "jest vitest mocha ava jasmine karma playwright cypress tap eslint prettier stylelint "
            "rspec phpunit unittest nose2 nosetests behave bats robot pylint flake8 mypy"
        ),
        (_TESTERS,),
    ),
    # What is --bail for others.
    "robot": (_TESTERS, Guard("writes a file", short="b")),
    "npm": (
        *_PACKAGES,
        # It takes any beginning of a command, and many a misspelt one.
        Guard(
            _PACKAGE_SCRIPTS,
            looks="ls list la ll view info show v outdated explain why audit search fund root "
            "prefix bin ping whoami query sbom",
        ),
    ),
    # Any other word is the name of a script, if the package has one of that name.
    "pnpm": (
        *_PACKAGES,
        Guard(_PACKAGE_SCRIPTS, looks="list ls why outdated audit licenses root bin view info"),
    ),
    "yarn": (*_PACKAGES, Guard(_PACKAGE_SCRIPTS, looks="info why")),
    "bun": (
        Guard("its arguments are a program", when="run x exec repl create", everything=True),
        Guard(
            _PACKAGE_SCRIPTS,
            looks="test outdated why info audit",
            only="--json --bail --timeout --coverage --only --todo --rerun-each "
            "--test-name-pattern -t",
            outside=True,
            star=True,
        ),
    ),
    "deno": (
        Guard(
            "its arguments are a program",
            when="run eval repl serve x jupyter task",
            everything=True,
        ),
        Guard(
            _CODE_OF_CHOICE,
            looks="test bench check fmt lint info doc types",
            only="--json --quiet -q --filter --fail-fast --parallel --check --no-check --watch",
            within="^[a-z]+:",
            outside=True,
            star=True,
        ),
    ),
    "coverage": (
        Guard("its arguments are a program", when="run", everything=True),
        Guard("writes files", long="--rcfile --data-file --directory", short="od", outside=True),
    ),
    "cargo": (
        Guard(
            "runs a program or code of one's choice",
            long="--config --manifest-path --fix --open --artifact-dir --out-dir --codegen "
            "--config-path --sysroot --extern",
            short="ZC",
            # Any other word may be a program cargo-x, or another name for a command.
            looks="build check test bench doc clippy fmt tree metadata search info version "
            "locate-project pkgid read-manifest verify-project fetch update clean "
            "generate-lockfile",
        ),
        _TOOLCHAIN,
        # What follows -- is for rustfmt, rustc or the tests.
        Guard(
            "writes files",
            long="--target-dir --lockfile-path --print-config --emit --logfile",
            short="o",
        ),
    ),
    "rustfmt": (
        _TOOLCHAIN,
        Guard("writes files", long="--config --config-path --emit --print-config", outside=True),
    ),
    "go": (
        Guard(
            "runs a program",
            long="-exec -toolexec -vettool -fixtool -overlay -modfile -C -ldflags -gcflags "
            "-asmflags -gccgoflags -compiler -pkgdir",
            looks="build test vet list fmt doc version fix clean help",
        ),
        Guard(
            "writes files",
            long="-o -outputdir -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile "
            "-trace -c -test.coverprofile -test.cpuprofile -test.outputdir -test.memprofile "
            "-test.blockprofile -test.mutexprofile -test.trace -test.gocoverdir -test.testlogfile "
            "-test.fuzzcachedir -fuzzcachedir -debug-actiongraph -debug-trace "
            "-debug-runtime-trace",
        ),
    ),
    **dict.fromkeys(
        ("pip", "pip3"),
        (
            Guard(
                "installs or runs code",
                looks="list show freeze check inspect index debug hash help",
                long="--python --log --log-file --proxy --cert --client-cert --report --cache-dir "
                "--index-url --pypi-url --extra-index-url --find-links --trusted-host "
                "--keyring-provider --requirement",
                short="ri",
                # Not as an option: --local is another one.
                within="--local-",
            ),
            # Of others, -f is something else.
            Guard("installs or runs code", when="list index", short="f"),
        ),
    ),
}
