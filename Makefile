# gattherd: `make run` shows it at work without hardware, `make test` tests it. `make help` lists the rest.

PACKAGES := libcurl4-openssl-dev libdbus-1-dev libpq-dev libsqlite3-dev libssl-dev libyaml-dev libmicrohttpd-dev libsystemd-dev zlib1g-dev \
            pkg-config dbus dbus-daemon sqlite3 mosquitto mosquitto-clients openssl
# Programs for tests, which are unpacked and not installed: their services would listen on all addresses.
SERVERS  := influxdb victoria-metrics postgresql-15 postgresql-client-15 pgbouncer libc-ares2
# Where PostgreSQL may be, installed or unpacked.
POSTGRES := /usr/lib/postgresql/15/bin .build/servers/usr/lib/postgresql/15/bin
PEER_PACKAGES := libmosquitto-dev
DEB_PACKAGES := debhelper dpkg-dev patchelf help2man git python3
REPOSITORY_PACKAGES := apt-utils gpg
BROWSER_PACKAGES := chromium chromium-driver python3
MACHINE_PACKAGES := flex bison bc gcc make xz-utils mmdebstrap e2fsprogs python3 python3-pip
FILTER   := BlueZ(Scenario|Fact)Tests|PeripheralPayloadTests|ClientScenarioTests
RELEASE  := .build/release
PREFIX   := /usr/local
PEER     := .build/peer
DECODERS := .build/sparkplug
ORACLES  := .build/catalogue
SAMPLES  := 300000
PAGE     := docs/performance.md
MINUTES  := 30
RECORDS  := 100000
PERMILLE := 20
PROFILES := $(DESTDIR)$(PREFIX)/lib/gattherd/profiles
COMPLETIONS := $(DESTDIR)$(PREFIX)/share
# The folders in which Debian's zsh looks for completions of packages, and for others.
ZSH_FOLDER := $(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)

.PHONY: help repository test-records test-reproducible test-fleet bench-handover setup setup-machine test-servers build run run-fleet install install-dev deb test-deb test test-browser test-bluez test-crash test-sparkplug test-homeassistant test-catalogue test-delays coverage catalogue faults bench bench-fleet bench-load benchmarks soak check format clean

# Installs the missing packages of a list, as root or with sudo, or prints the command that would install them.
define install_packages
	@missing=$$(for package in $(1); do \
	    dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || echo $$package; done); \
	[ -z "$$missing" ] && exit 0; \
	missing=$$(echo $$missing); \
	if [ "$$(id -u)" = 0 ]; then sudo=; \
	elif sudo -n true 2>/dev/null || { [ -t 0 ] && command -v sudo >/dev/null; }; then sudo=sudo; \
	else echo "make: missing Debian packages; install them with: apt-get install $$missing" >&2; exit 77; fi; \
	echo "make: installing $$missing"; \
	$$sudo apt-get update -qq && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null
endef

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 15

setup: ## install what is missing: Debian packages, as root or with sudo
	@command -v swift >/dev/null || { echo "make: no Swift toolchain in PATH; install Swift 6.3 from swift.org" >&2; exit 69; }
	$(call install_packages,$(PACKAGES))

# Needs no root, unless the lists of packages are missing.
test-servers: setup ## unpack the databases that tests start, in .build/servers
	@mkdir -p .build/servers && cd .build/servers && for package in $(SERVERS); do \
	    [ -e $$package.unpacked ] && continue; rm -f $${package}_*.deb; \
	    apt-get download -qq $$package 2>/dev/null || { \
	        if [ "$$(id -u)" = 0 ]; then apt-get update -qq; else sudo -n apt-get update -qq; fi && \
	        apt-get download -qq $$package; } || \
	        { echo "make: cannot download the Debian package $$package" >&2; exit 77; }; \
	    dpkg-deb -x $${package}_*.deb . && rm $${package}_*.deb && touch $$package.unpacked || exit; done

setup-machine: setup ## install the further packages that test-bluez needs
	$(call install_packages,$(MACHINE_PACKAGES))

# Undeclared imports and warnings are errors in `make check`, and with STRICT=yes in every build of the tests, so that
# continuous integration compiles them once. A newer compiler may warn, so `make test` accepts warnings by default.
CHECKS := --explicit-target-dependency-import-check error -Xswiftc -warnings-as-errors
BUILD_TESTS = swift build --build-tests $(if $(STRICT),$(CHECKS))

# The compiler may optimise across modules: about 4 % less CPU.
OPTIMIZATION := -Xswiftc -cross-module-optimization

# Programs do not contain the folder in which they were built; only the linker writes it into libraries.
NO_PATHS := -Xswiftc -file-prefix-map -Xswiftc $(CURDIR)=. -Xcc -ffile-prefix-map=$(CURDIR)=.

# The same sources give the same programs. Debug information names no clang modules, because their signatures differ each
# time. Some choices of the compiler depend on addresses in its memory and on hashes, so neither is random, and each
# module has one thread. A container may forbid addresses that are not random.
REPRODUCIBLE := -Xswiftc -Xfrontend -Xswiftc -no-clang-module-breadcrumbs -Xswiftc -num-threads -Xswiftc 1
DETERMINISTIC := SWIFT_DETERMINISTIC_HASHING=1 $(shell setarch -R true 2>/dev/null && echo setarch -R)

# The installed products. The benchmarks, the examples and the products that only tests need are left out.
INSTALLED := gattherd gattherd-sim HeartRate NumberService
RELEASE_BUILD = $(DETERMINISTIC) swift build -c release $(OPTIMIZATION) $(NO_PATHS) $(REPRODUCIBLE)

build: setup ## the daemon, the simulator and the native profiles, optimised
	@for product in $(INSTALLED); do $(RELEASE_BUILD) --product $$product || exit; done

run: build ## a neighbourhood of simulated peripherals, a broker and the daemon, until Ctrl-C
	@exec $(RELEASE)/gattherd simulate

# Without PostgreSQL, or a network to get it by, the fleet has no central history.
run-fleet: build ## three gateways around a walking strap, a broker, dashboards and a central history, until Ctrl-C
	@-[ -n "$(wildcard $(addsuffix /postgres,$(POSTGRES)))" ] || $(MAKE) --no-print-directory test-servers
	@for bin in $(POSTGRES); do [ -x $$bin/postgres ] && exec $(RELEASE)/gattherd simulate --postgres $$bin config/scenarios/fleet.yaml; done; \
	exec $(RELEASE)/gattherd simulate config/scenarios/fleet.yaml

install: build ## the programs and profiles to PREFIX (default: /usr/local); they need the toolchain's run-time libraries
	@install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(RELEASE)/gattherd $(RELEASE)/gattherd-sim
	@install -D -m 644 -t $(PROFILES) $(RELEASE)/libHeartRate.so $(RELEASE)/libNumberService.so Plugins/Standard/*.yaml \
	    Plugins/Standard/profile.schema.json
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/gattherd/scenarios config/scenarios/*.yaml
	@$(RELEASE)/gattherd config schema | install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/share/gattherd/gattherd.schema.json
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/gattherd/grafana config/grafana/*.json
	@$(RELEASE)/gattherd completions bash | install -D -m 644 /dev/stdin $(COMPLETIONS)/bash-completion/completions/gattherd
	@$(RELEASE)/gattherd completions zsh | install -D -m 644 /dev/stdin $(COMPLETIONS)/zsh/$(ZSH_FOLDER)/_gattherd
	@$(RELEASE)/gattherd completions fish | install -D -m 644 /dev/stdin $(COMPLETIONS)/fish/vendor_completions.d/gattherd.fish

# The sources of ProfileKit keep their places, so that a checkout and the installed package are used alike.
KIT := $(DESTDIR)$(PREFIX)/src/gattherd
install-dev: ## what authors of native profiles need, to PREFIX: header, pkg-config file, ProfileKit, examples
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/include Sources/C/CGattherdProfile/include/gattherd_profile.h
	@sed 's|@PREFIX@|$(PREFIX)|' config/dev/gattherd-profile.pc | \
	    install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/share/pkgconfig/gattherd-profile.pc
	@install -D -m 644 -t $(KIT) config/dev/Package.swift LICENSE
	@for folder in C/CGattherdProfile C/CGattherdProfile/include Core/GattherdGATT Profiles/ProfileKit; do \
	    install -D -m 644 -t $(KIT)/Sources/$$folder $$(find Sources/$$folder -maxdepth 1 -type f) || exit; done
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/gattherd-dev docs/native-profiles.md docs/profiles.md docs/advertisements.md
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/gattherd-dev/examples Plugins/Examples/*.c

deb: build ## Debian packages in .build/deb: gattherd, which needs no toolchain where it is installed, and gattherd-dev
	$(call install_packages,$(DEB_PACKAGES))
	@config/debian/build

repository: deb ## a signed apt repository in .build/repository, with the packages; KEY names a secret key of gpg
	$(call install_packages,$(REPOSITORY_PACKAGES))
	@[ -n "$(KEY)" ] || { echo "make: name a secret key of gpg: make repository KEY=packages@example.org" >&2; exit 64; }
	@config/debian/repository '$(KEY)' .build/repository .build/deb/*.deb

test-deb: deb ## install, run, upgrade and purge the packages in a new Debian tree, as root
	$(call install_packages,mmdebstrap systemd-container $(REPOSITORY_PACKAGES))
	@Tests/package.sh .build/deb/gattherd_*.deb .build/deb/gattherd-dev_*.deb

test-reproducible: deb ## build the packages again, from a new clone, and compare them byte for byte, as root
	@Tests/reproducible.sh

test: test-servers ## all tests; FILTER chooses some
	@$(BUILD_TESTS)
	@$(if $(findstring command,$(origin FILTER)),swift test --disable-xctest --skip-build --no-parallel --filter '$(FILTER)',Tests/run.sh)

test-browser: build ## the dashboard in a headless Chromium, with 200 devices as well; screenshots go to .build/browser
	$(call install_packages,$(BROWSER_PACKAGES))
	@python3 -B Tests/Browser/test_dashboard.py $(RELEASE) .build/browser
	@python3 -B Tests/Browser/test_pages.py $(RELEASE) .build/browser
	@python3 -B Tests/Browser/test_modules.py $(RELEASE) .build/browser

test-bluez: setup-machine ## the tests on a real bluetoothd in a virtual machine; FILTER chooses others
	@$(BUILD_TESTS)
	@Tests/RealBlueZ/test.sh '$(FILTER)'

test-crash: setup ## kill the daemon, its broker, its host's power, 200 times each: about 40 minutes
	@$(BUILD_TESTS)
	@GATTHERD_CRASHES=$${GATTHERD_CRASHES:-200} swift test --disable-xctest --skip-build --filter GatewayTests.CrashRecoveryTests

# Two libraries from the package index, in environments of their own, because they need different versions of protobuf.
test-sparkplug: setup ## Sparkplug messages, checked by two decoders from the Python package index
	@$(BUILD_TESTS)
	@for decoder in pysparkplug wrapper; do \
	    [ -x $(DECODERS)/$$decoder/bin/pip ] || python3 -m venv $(DECODERS)/$$decoder || exit; \
	    $(DECODERS)/$$decoder/bin/pip install --quiet --disable-pip-version-check -r Tests/Sparkplug/$$decoder.txt || exit; \
	done
	@GATTHERD_SPARKPLUG_DECODERS=$(CURDIR)/$(DECODERS) swift test --disable-xctest --skip-build --filter GattherdSparkplugTests

# Home Assistant needs Python 3.13. Where it cannot be had, the tests are skipped.
HOME_ASSISTANT := .build/homeassistant
test-homeassistant: build ## a gateway with a real Home Assistant from the Python package index
	@Tests/HomeAssistant/environment.sh $(HOME_ASSISTANT); case $$? in \
	    0) python3 -B Tests/HomeAssistant/test_homeassistant.py $(RELEASE) $(HOME_ASSISTANT)/bin/hass;; \
	    77) echo 'make: the tests are skipped' >&2;; \
	    *) exit 1;; esac

test-catalogue: setup ## the decoding of recorded and mutated payloads, compared with decoders from the Python package index
	@$(BUILD_TESTS)
	@[ -x $(ORACLES)/bin/pip ] || python3 -m venv $(ORACLES)
	@$(ORACLES)/bin/pip install --quiet --disable-pip-version-check -r Tests/Catalogue/requirements.txt
	@GATTHERD_CATALOGUE_PYTHON=$(CURDIR)/$(ORACLES)/bin/python swift test --disable-xctest --skip-build --filter CatalogueComparisonTests

test-records: test-servers ## RECORDS (default: 100000) stored records with cut links, kills, wrapped numbers and clocks that are set
	@$(BUILD_TESTS)
	@GATTHERD_RECORDS=$(RECORDS) swift test --disable-xctest --skip-build --filter 'RecordFaultTests|StoredRecordTests'

test-delays: test-servers ## all tests, with PERMILLE (default: 20) of system calls delayed at random, to find races
	@$(BUILD_TESTS)
	@clang -O2 -Wall -Wextra -Werror -shared -fPIC -o .build/delays.so Tests/Delays/delays.c
	@LD_PRELOAD=$(CURDIR)/.build/delays.so GATTHERD_DELAYS=$(PERMILLE) Tests/run.sh

coverage: test-servers ## the share of each module's lines that the tests execute; FILTER chooses tests
	@FILTER='$(if $(findstring command,$(origin FILTER)),$(FILTER))' python3 -B Tests/coverage.py

faults: setup ## write the table of docs/faults.md: faults and recovery times
	@$(BUILD_TESTS)
	@GATTHERD_WRITE_FAULTS=1 swift test --disable-xctest --skip-build --filter FaultTableTests
	@sed -n '/^<!-- faults/,/^<!-- end/{/^|/p}' docs/faults.md

catalogue: setup ## write docs/catalogue.md: the models that the included profiles recognise
	@$(BUILD_TESTS)
	@GATTHERD_WRITE_CATALOGUE=1 swift test --disable-xctest --skip-build --filter ModelCatalogueTests

bench: build benchmarks ## measure the tables of docs/performance.md in 30 minutes; BENCH chooses: load or one of its parts, history, decoding, fleet
	@for part in $(or $(BENCH),load history decoding fleet); do case $$part in \
	    load) $(MAKE) --no-print-directory bench-load;; \
	    history) $(RELEASE)/benchmarks history --count $(SAMPLES) --page $(PAGE);; \
	    decoding) $(RELEASE)/benchmarks decoding --page $(PAGE);; \
	    fleet) $(MAKE) --no-print-directory bench-fleet;; \
	    *) $(MAKE) --no-print-directory bench-load PART=$$part;; esac || exit; done

benchmarks:
	@$(RELEASE_BUILD) --product benchmarks

# The Python peer comes from the package index into an environment of its own; without it only the plain C program is the baseline.
bench-load:
	$(call install_packages,$(PEER_PACKAGES))
	@clang -O2 -Wall -Wextra -Werror -o .build/plain Tests/Benchmarks/peers/plain.c $$(pkg-config --cflags --libs dbus-1 libmosquitto sqlite3)
	@$(PEER)/bin/python -c 'import bleak, paho.mqtt' 2>/dev/null || { python3 -m venv $(PEER) && \
	    $(PEER)/bin/pip install --quiet --disable-pip-version-check -r Tests/Benchmarks/peers/requirements.txt; } || true
	@peer=; ! $(PEER)/bin/python -c 'import bleak, paho.mqtt' 2>/dev/null || peer="--peer $(PEER)/bin/python"; \
	python3 -B Tests/Benchmarks/Load/load.py $(RELEASE) --plain .build/plain --page $(PAGE) $$peer $(if $(PART),--only $(PART))

bench-fleet: test-servers
	@clang -O2 -Wall -Wextra -Werror -o .build/insert Tests/Benchmarks/peers/insert.c $$(pkg-config --cflags --libs libpq)
	@$(RELEASE)/benchmarks fleet --peer .build/insert --page $(PAGE) $(if $(READINGS),--count $(READINGS))

test-fleet: build test-servers ## three gateways with random faults, for MINUTES (default: 30), compared with the centre row by row
	@python3 -B Tests/Fleet/faults.py --programs $(RELEASE) --minutes $(MINUTES)

bench-handover: build test-servers ## outage and duration of hand-overs between three gateways, in 5 minutes
	@python3 -B Tests/Fleet/handover.py --programs $(RELEASE)

soak: build benchmarks ## test whether the daemon grows under load, for MINUTES (default: 30)
	@python3 -B Tests/Benchmarks/Load/soak.py $(RELEASE) --minutes $(MINUTES)

check: setup ## language, formatting, imports and warnings
	@python3 -B Tests/language.py
	@python3 -B Tests/Benchmarks/Load/report.py
	@python3 -B Tests/Benchmarks/Load/sensors.py
	@swift format lint --strict --recursive Package.swift Sources Plugins Tests
	@swift build --build-tests $(CHECKS) $(if $(STRICT),,--scratch-path .build/check)

format: ## format all sources
	@swift format --in-place --recursive Package.swift Sources Plugins Tests

clean: ## delete what was built
	@rm -rf .build .build-coverage
