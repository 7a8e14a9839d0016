# Shared by build.sh and boot.sh: the machine's folder, and messages.

# The machine's folder, outside the checkout: `make clean` keeps it and all checkouts share it.
VM=${GATTHERD_VM:-${XDG_CACHE_HOME:-$HOME/.cache}/gattherd/real-bluez}

say() { echo "real-bluez: $*"; }

fail() { # fail STATUS WORDS...
  local status=$1
  shift
  echo "real-bluez: $*" >&2
  exit "$status"
}

case $VM in
  *[[:space:],]*) fail 64 "the machine's folder must have no spaces or commas in its name: $VM; set GATTHERD_VM" ;;
esac
