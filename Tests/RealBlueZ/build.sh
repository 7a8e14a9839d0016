#!/usr/bin/env bash
# Builds the machine: a User Mode Linux kernel with Bluetooth, and a disk with Debian's bluetoothd and the packages of
# the tests. Builds only missing parts, and prints nothing if there are none. Needs root or sudo, and on the host the
# packages of the Makefile's MACHINE_PACKAGES. README.md describes the environment variables.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/common.sh"

# 6.1.192-2 and similar versions have a use-after-free in L2CAP: a peripheral that ends a link right after it was made
# hangs the machine. 6.1.176-1 does not.
kernel_version=${GATTHERD_VM_KERNEL:-6.1.176-1}
jobs=$(nproc)
log=$VM/build.log
work=$VM/work
export LC_ALL=C.UTF-8

main() {
  mkdir -p "$VM"
  exec 9>"$VM/lock"
  find "$VM" -maxdepth 1 -name 'run-*' -mmin +1440 -exec rm -rf {} + # left by a killed boot.sh
  flock -n 9 || { say "waiting for another build"; flock 9; }
  if ! is_done kernel "$(kernel_key)" "$VM/linux"; then build_kernel; fi
  if ! is_done disk "$(disk_key)" "$VM/disk.img"; then build_disk; fi
}

# A step is done if its product exists and was built from the same inputs.
is_done() { # is_done STEP KEY PRODUCT
  [ -f "$3" ] && [ "$(cat "$VM/$1.key" 2>/dev/null)" = "$2" ]
}
kernel_key() { { echo "$kernel_version"; cat "$here/kernel.config"; } | sha256sum; }
disk_key() { cat "$here/packages.txt" "$here/requirements.txt" "$here/guest/stub" | sha256sum; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Retries commands that need the network.
three_times() { # three_times WHAT COMMAND...
  local what=$1 attempt
  shift
  for attempt in 1 2 3; do
    "$@" >>"$log" 2>&1 && return
    [ $attempt = 3 ] || { say "$what failed; trying again"; sleep $((attempt * 5)); }
  done
  fail 69 "$what failed three times; is there a network? The log is $log"
}

build_kernel() {
  local start=$SECONDS source=$work/linux
  : >"$log"
  need flex bison bc gcc make xz
  fetch_kernel
  say "kernel: compiling for about $((500 / jobs)) s with $jobs processors"
  (
    cd "$source"
    make ARCH=um KCONFIG_ALLCONFIG="$here/kernel.config" allnoconfig
    check_configuration
    nice make ARCH=um -j"$jobs" linux
    strip linux
  ) >>"$log" 2>&1 || fail 70 "the kernel does not compile; the log is $log"
  mv "$source/linux" "$VM/linux"
  kernel_key >"$VM/kernel.key"
  rm -rf "$work"
  say "kernel: done in $((SECONDS - start)) s"
}

# Kconfig silently drops unknown options and options with missing dependencies.
check_configuration() {
  local missing
  missing=$(grep '=y$' "$here/kernel.config" | grep -vxFf .config || true)
  [ -z "$missing" ] || { echo "not in the kernel's configuration:" $missing; return 1; }
}

# Downloads the sources, 130 MB, from Debian's archive: the pinned version, or the newest if it is gone.
fetch_kernel() {
  local package=linux-source-6.1
  rm -rf "$work"
  mkdir -p "$work/linux"
  if ! apt-cache madison $package | grep -F " $kernel_version " >/dev/null; then
    three_times "apt-get update" as_root apt-get update
    if ! apt-cache madison $package | grep -F " $kernel_version " >/dev/null; then
      say "kernel: $package $kernel_version is no longer in the archive; using the newest, which may" \
        "hang in tests that end a link right after it was made"
      kernel_version=$(apt-cache madison $package | awk '{ print $3; exit }')
      [ -n "$kernel_version" ] || fail 69 "no $package in the archive; is this Debian 12?"
    fi
  fi
  say "kernel: downloading $package $kernel_version (130 MB)"
  three_times "the download of $package" download "$package=$kernel_version"
  dpkg-deb -x "$work"/*.deb "$work"
  tar -xJf "$work/usr/src/$package.tar.xz" -C "$work/linux" --strip-components=1
}

download() { (cd "$work" && apt-get download "$1"); }

build_disk() {
  local start=$SECONDS root=$work/root packages
  need mmdebstrap mkfs.ext4 python3
  say "disk: installing Debian's packages, for about a minute"
  packages=$(grep -v '^#' "$here/packages.txt" | paste -sd,)
  as_root rm -rf "$work"
  mkdir -p "$work/wheels"
  three_times "the installation of packages" install_packages "$packages" "$root"
  three_times "the download of bumble" python3 -m pip download --quiet --no-deps --only-binary :all: \
    --require-hashes --dest "$work/wheels" --requirement "$here/requirements.txt"
  as_root "${BASH_SOURCE[0]}" --finish-disk "$root" "$work" >>"$log" 2>&1 ||
    fail 70 "the disk cannot be made; the log is $log"
  mv "$work/disk.img" "$VM/disk.img"
  disk_key >"$VM/disk.key"
  as_root rm -rf "$work"
  say "disk: done in $((SECONDS - start)) s"
}

install_packages() { # install_packages LIST ROOT
  as_root rm -rf "$2"
  as_root nice mmdebstrap --variant=minbase --mode=root --include="$1" bookworm "$2" "$(archive)"
}

# The host's mirrors on Debian 12, else Debian's own.
archive() {
  local sources=/etc/apt/sources.list.d/debian.sources
  if grep -qs bookworm $sources; then echo $sources; else echo "deb http://deb.debian.org/debian bookworm main"; fi
}

# As root: adds files without a package, and makes the disk.
finish_disk() { # finish_disk ROOT WORK
  local root=$1 work=$2 wheel
  for wheel in "$work"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$root/usr/lib/python3/dist-packages"
  done
  chroot "$root" python3 -m compileall -q /usr/lib/python3/dist-packages || true
  install -m 755 "$here/guest/stub" "$root/sbin/stub"
  mkdir -p "$root/share" "$root/run" "$root/var/lib/bluetooth"
  echo real-bluez >"$root/etc/hostname"
  printf '127.0.0.1 localhost real-bluez\n::1 localhost\n' >"$root/etc/hosts"
  echo b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0 >"$root/etc/machine-id"
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/doc/* "$root"/usr/share/locale/*
  truncate -s 2G "$work/disk.img"
  mkfs.ext4 -q -F -O ^has_journal -d "$root" "$work/disk.img"
  chmod 644 "$work/disk.img"
}

need() {
  local program missing=()
  for program; do command -v "$program" >/dev/null || missing+=("$program"); done
  [ ${#missing[@]} = 0 ] || fail 69 "missing on this host: ${missing[*]}; run make setup-machine"
}

export PATH=$PATH:/usr/sbin:/sbin
case ${1:-} in
  '') main ;;
  --finish-disk) finish_disk "$2" "$3" ;;
  *) echo "usage: build.sh" >&2; exit 64 ;;
esac
