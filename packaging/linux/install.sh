#!/bin/sh
# Make this folder's Causerie known to the desktop of one user, or forget it again.
#
#   ./install.sh              menu entry, icons, manual page, `causerie` in ~/.local/bin, and
#                             links that begin with causerie: open here
#   ./install.sh --uninstall  all of that away; profiles with their messages and keys stay
#
# The program stays in this folder and runs from it: after moving the folder, run this again.
# To upgrade, unpack the new version beside the old one, and run install.sh there.

set -eu

id=chat.causerie.Causerie
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
data=${XDG_DATA_HOME:-$HOME/.local/share}
bin=$HOME/.local/bin
program=$here/program/causerie

fail() {
    printf 'install.sh: %s\n' "$1" >&2
    exit 1
}

# Says nothing where a desktop lacks the tool: it reads the files by itself sooner or later.
refresh() {
    if command -v update-desktop-database >/dev/null 2>&1; then
        update-desktop-database -q "$data/applications" || true
    fi
    if command -v gtk-update-icon-cache >/dev/null 2>&1; then
        gtk-update-icon-cache -q -t "$data/icons/hicolor" 2>/dev/null || true
    fi
}

remove() {
    rm -f -- "$data/applications/$id.desktop" "$data/metainfo/$id.metainfo.xml" \
        "$data/man/man1/causerie.1.gz"
    for icon in "$data"/icons/hicolor/*/apps/"$id".png "$data"/icons/hicolor/*/apps/"$id".svg; do
        rm -f -- "$icon"
    done
    # Only a link that install.sh made; a program of that name is somebody else's.
    case $(readlink -- "$bin/causerie" 2>/dev/null || true) in
        */program/causerie) rm -f -- "$bin/causerie" ;;
    esac
}

case ${1-} in
    --uninstall)
        remove
        refresh
        printf 'Causerie is no longer known to the desktop. Profiles are still in %s.\n' \
            "$data/causerie"
        printf 'To remove the program as well, delete %s\n' "$here"
        exit 0
        ;;
    '') ;;
    *) fail "$1: allowed is --uninstall, or nothing" ;;
esac

[ -x "$program" ] || fail "$program is not there: unpack the whole archive"
case $here in
    *[\"\`\$\\%]* | *"
"*) fail "the folder's name has a character that menu entries cannot hold: $here" ;;
esac
"$program" --version >/dev/null || fail "the program does not start here; see above"

mkdir -p -- "$data" "$bin" || fail "cannot write to $data or $bin"
[ ! -e "$bin/causerie" ] || [ -L "$bin/causerie" ] ||
    fail "$bin/causerie is there already and was not made by install.sh"
remove
(cd "$here/share" && find . -type d) | while IFS= read -r folder; do
    mkdir -p -- "$data/$folder"
done
(cd "$here/share" && find . -type f) | while IFS= read -r file; do
    cp -- "$here/share/$file" "$data/$file"
done
entry=$data/applications/$id.desktop
while IFS= read -r line; do
    case $line in
        Exec=*) printf 'Exec="%s" %%u\n' "$program" ;;
        *) printf '%s\n' "$line" ;;
    esac
done <"$here/share/applications/$id.desktop" >"$entry.new"
mv -- "$entry.new" "$entry"
ln -sfn -- "$program" "$bin/causerie"
refresh
if command -v xdg-mime >/dev/null 2>&1; then
    xdg-mime default "$id.desktop" x-scheme-handler/causerie || true
fi
printf 'Causerie is in the menu, and causerie: links open it. To undo: %s --uninstall\n' \
    "$here/install.sh"
case :$PATH: in
    *:"$bin":*) ;;
    *) printf 'The command causerie is in %s, which is not on your PATH.\n' "$bin" ;;
esac
