// swift-tools-version: 6.3
import PackageDescription

/// The settings of every Swift target, tests included.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ImmutableWeakCaptures"),
    .enableExperimentalFeature("Lifetimes"),
    .strictMemorySafety(),
]

/// A module in `Sources/<path>`, named for the last component.
///
/// It may import exactly the dependencies listed here.
func module(_ path: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
    .target(
        name: name(path),
        dependencies: dependencies,
        path: "Sources/\(path)",
        exclude: exclude,
        swiftSettings: settings
    )
}

/// A program in `Sources/<path>`.
func program(_ path: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(
        name: name(path),
        dependencies: dependencies,
        path: "Sources/\(path)",
        swiftSettings: settings
    )
}

/// Code in `Tests/<path>` that several test targets share.
func kit(_ path: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name(path), dependencies: dependencies, path: "Tests/\(path)", swiftSettings: settings)
}

/// The tests in `Tests/<path>`.
func tests(_ path: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name(path), dependencies: dependencies, path: "Tests/\(path)", swiftSettings: settings)
}

func name(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
}

/// A Debian C library, found by pkg-config.
func debian(_ name: String, pkgConfig: String, package: String) -> Target {
    .systemLibrary(name: name, path: "Sources/C/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// A native profile: `Plugins/<name>`, one shared library that gattherd opens at run time.
///
/// The entry point is a target of its own: all tests are linked into one program, which can have only one entry point.
func plugin(_ name: String) -> [Target] {
    [
        .target(
            name: name,
            dependencies: ["GattherdGATT", "ProfileKit"],
            path: "Plugins/\(name)/Sources",
            swiftSettings: settings
        ),
        .target(
            name: "\(name)Export",
            dependencies: [.target(name: name), "ProfileKit"],
            path: "Plugins/\(name)/Export",
            swiftSettings: settings
        ),
        .testTarget(
            name: "\(name)Tests",
            dependencies: [.target(name: name), "GattherdGATT", "ProfileKit"],
            path: "Plugins/\(name)/Tests",
            swiftSettings: settings
        ),
    ]
}

// C: system libraries and thin shims. No logic.
let c: [Target] = [
    // The C contract with native profiles: one header.
    .target(name: "CGattherdProfile", path: "Sources/C/CGattherdProfile"),
    // Linux calls that Swift's Glibc overlay does not export: epoll, eventfd, signalfd, socket macros.
    .systemLibrary(name: "CLinux", path: "Sources/C/CLinux"),
    debian("CDBus", pkgConfig: "dbus-1", package: "libdbus-1-dev"),
    debian("CSQLite", pkgConfig: "sqlite3", package: "libsqlite3-dev"),
    // TLS for MQTT, AES for advertisements.
    debian("COpenSSL", pkgConfig: "openssl", package: "libssl-dev"),
    // The central history of several gateways.
    debian("CPostgres", pkgConfig: "libpq", package: "libpq-dev"),
    debian("CYAML", pkgConfig: "yaml-0.1", package: "libyaml-dev"),
    debian("CMicroHTTPD", pkgConfig: "libmicrohttpd", package: "libmicrohttpd-dev"),
    debian("CSystemd", pkgConfig: "libsystemd", package: "libsystemd-dev"),
    // HTTP for outputs.
    debian("CCurl", pkgConfig: "libcurl", package: "libcurl4-openssl-dev"),
    // gzip for the bodies of requests.
    debian("CZlib", pkgConfig: "zlib", package: "zlib1g-dev"),
]

// Base: infrastructure without a word of the domain.
let base: [Target] = [
    // Locks, the event loop that is an executor, timers, observable state.
    module("Base/GattherdSync", ["CLinux"]),
    // Log entries, levels, counters.
    module("Base/GattherdLog", ["GattherdSync"]),
    // Child processes, signals, a private dbus-daemon; the process's own memory.
    module("Base/GattherdProcess", ["CLinux", "GattherdSync"]),
    // State machines as values: the protocol, a runner, an observable proxy, a throttle.
    module("Base/GattherdTransducer", ["GattherdSync"]),
    // HTTP requests by libcurl, off the cooperative pool; WebSocket; gzip.
    module("Base/GattherdHTTPClient", ["CCurl", "COpenSSL", "CZlib", "GattherdSync"]),
    // YAML text to nodes with positions, quantities and misspelt words, for configuration, profiles and scenarios.
    module("Base/GattherdYAML", ["CYAML"]),
]

// Core: values and decisions. No I/O, no clocks.
let core: [Target] = [
    // GATT values: UUIDs, addresses, payloads, IEEE 11073 numbers, assigned numbers.
    module("Core/GattherdGATT"),
    // Device, stream, reading, sample, link state, fault; the protocols between modules.
    module("Core/GattherdModel", ["GattherdGATT"]),
    // State machines: links, supervision, delivery, backoff. Pure values; time is passed in.
    module("Core/GattherdMachines", ["GattherdGATT", "GattherdModel", "GattherdTransducer"]),
    // YAML text to typed configuration, or errors with line and column; reads no files.
    module("Core/GattherdConfig", ["GattherdGATT", "GattherdModel", "GattherdYAML"]),
]

// Radio: Bluetooth through BlueZ.
let radio: [Target] = [
    // D-Bus: one connection, one thread, one actor. libdbus-1 connects and marshals.
    module("Radio/GattherdDBus", ["CDBus", "CLinux", "GattherdSync"]),
    // The client API for Swift programmers. No D-Bus type in it; attempts and pauses are the machines' of the daemon.
    module(
        "Radio/GattherdBluetooth",
        ["GattherdGATT", "GattherdLog", "GattherdMachines", "GattherdModel", "GattherdSync"]
    ),
    // GattherdBluetooth on org.bluez; one file maps every error name.
    module(
        "Radio/GattherdBlueZ",
        ["CLinux", "GattherdBluetooth", "GattherdDBus", "GattherdGATT", "GattherdLog", "GattherdModel", "GattherdSync"]
    ),
]

// Profiles: decoding of characteristics and advertisements.
let profiles: [Target] = [
    // The Swift API for native profiles.
    module("Profiles/ProfileKit", ["CGattherdProfile", "GattherdGATT"]),
    // The registry of profiles: native loader, YAML compiler.
    module(
        "Profiles/GattherdProfiles",
        ["CGattherdProfile", "COpenSSL", "GattherdGATT", "GattherdModel", "GattherdSync", "GattherdYAML"]
    ),
]

// Store: history in SQLite.
let store: [Target] = [
    // SQLite: journal, series, events, rejects, retention, summaries, queries.
    module("Store/GattherdHistory", ["CSQLite", "GattherdLog", "GattherdModel", "GattherdSync"]),
    // Import and export of history: time expressions, charts, JSON lines, line protocol.
    module("Store/GattherdExchange", ["GattherdGATT", "GattherdHistory", "GattherdModel", "GattherdYAML"]),
]

// Outputs: where readings go.
let outputs: [Target] = [
    // The MQTT client: packets, session, connection, TLS. No topic of ours.
    module("Outputs/GattherdMQTT", ["CLinux", "COpenSSL", "GattherdSync"]),
    // MQTT delivery: readings, cursor, topics, controls, Home Assistant.
    module(
        "Outputs/GattherdDelivery",
        ["GattherdLog", "GattherdMQTT", "GattherdMachines", "GattherdModel", "GattherdSync"]
    ),
    // The WebSocket API of Home Assistant, and the import of statistics by it.
    module("Outputs/GattherdHomeAssistant", ["GattherdHTTPClient", "GattherdModel"]),
    // The framework of outputs that deliver batches: machine, runner, registration. An output is a sink and its settings.
    module(
        "Outputs/GattherdOutputs",
        [
            "GattherdConfig", "GattherdLog", "GattherdMachines", "GattherdModel", "GattherdSync",
            "GattherdTransducer",
        ]
    ),
    // JSON lines to a file or a named pipe; the smallest output.
    module("Outputs/GattherdLines", ["GattherdConfig", "GattherdModel", "GattherdOutputs", "GattherdSync"]),
    // InfluxDB and what understands its line protocol: points, write requests.
    module(
        "Outputs/GattherdInflux",
        ["GattherdConfig", "GattherdHTTPClient", "GattherdModel", "GattherdOutputs", "GattherdSync"]
    ),
    // The central history in PostgreSQL: its schema, and the output that copies the journal there exactly once.
    module(
        "Outputs/GattherdPostgres",
        [
            "CPostgres", "GattherdConfig", "GattherdLog", "GattherdMachines", "GattherdModel", "GattherdOutputs",
            "GattherdSync",
        ]
    ),
    // A Sparkplug B edge node: births, values, commands.
    module(
        "Outputs/GattherdSparkplug",
        [
            "GattherdConfig", "GattherdLog", "GattherdMQTT", "GattherdMachines", "GattherdModel", "GattherdOutputs",
            "GattherdSync",
        ]
    ),
    // HTTP: server, access, metrics, API, dashboard.
    module(
        "Outputs/GattherdHTTP",
        [
            "CLinux", "CMicroHTTPD", "GattherdDashboard", "GattherdGATT", "GattherdLog", "GattherdModel",
            "GattherdSync",
        ]
    ),
    // The dashboard's files, compiled in. A module of its own: compiling embedded bytes is slow.
    .target(
        name: "GattherdDashboard",
        path: "Sources/Outputs/GattherdDashboard",
        resources: [.embedInCode("Files")],
        swiftSettings: settings
    ),
]

// Gateway: the daemon and its command line.
let gateway: [Target] = [
    // Runners that carry out the effects of machines: links, supervision, ingest, control socket.
    module(
        "Gateway/GattherdDaemon",
        [
            "CLinux", "GattherdBluetooth", "GattherdGATT", "GattherdLog", "GattherdMachines", "GattherdModel",
            "GattherdSync",
        ]
    ),
    // The gateway put together from a configuration: start, reload, enrolment, requests, status, systemd.
    module(
        "Gateway/GattherdGateway",
        [
            "CLinux", "CSystemd", "GattherdBlueZ", "GattherdBluetooth", "GattherdConfig", "GattherdDBus",
            "GattherdDaemon", "GattherdDelivery", "GattherdExchange", "GattherdGATT", "GattherdHTTP",
            "GattherdHTTPClient", "GattherdHistory", "GattherdHomeAssistant", "GattherdInflux", "GattherdLines",
            "GattherdLog", "GattherdMQTT", "GattherdMachines",
            "GattherdModel", "GattherdOutputs", "GattherdPostgres", "GattherdProcess", "GattherdProfiles",
            "GattherdSparkplug", "GattherdSync", "GattherdYAML",
        ]
    ),
    // The command line: arguments, output, exit codes.
    program(
        "Gateway/gattherd",
        [
            "CLinux", "GattherdBlueZ", "GattherdBluetooth", "GattherdCapture", "GattherdConfig", "GattherdDBus",
            "GattherdDaemon", "GattherdDelivery", "GattherdExchange", "GattherdGATT", "GattherdGateway",
            "GattherdHTTP", "GattherdHistory", "GattherdHomeAssistant", "GattherdLog", "GattherdMQTT",
            "GattherdMachines", "GattherdModel", "GattherdPostgres", "GattherdProcess", "GattherdProfiles",
            "GattherdSimulator", "GattherdSync",
            "GattherdYAML",
        ]
    ),
]

// Tools: simulation and capture.
let tools: [Target] = [
    // Recorded payloads in files, for capture, replay and the simulator.
    module("Tools/GattherdCapture", ["GattherdGATT", "GattherdModel", "GattherdYAML"]),
    // A simulated org.bluez: peripherals and faults by scenario.
    module(
        "Tools/GattherdSimulator",
        ["GattherdCapture", "GattherdDBus", "GattherdGATT", "GattherdSync", "GattherdYAML"],
        exclude: ["README.md"]
    ),
    // GattherdBluetooth on simulated peripherals in one call, for tests of its users.
    module(
        "Tools/GattherdBluetoothTesting",
        ["GattherdBlueZ", "GattherdDBus", "GattherdProcess", "GattherdSimulator"]
    ),
    // The simulator as a program.
    program(
        "Tools/gattherd-sim",
        ["GattherdDBus", "GattherdGATT", "GattherdProcess", "GattherdSimulator", "GattherdSync"]
    ),
]

// Tests, in the same wings.
let kits: [Target] = [
    // A private bus, a temporary broker, temporary folders.
    kit("Kits/TestKit", ["CLinux", "GattherdHTTPClient", "GattherdProcess", "GattherdSync"]),
    // A whole gateway with virtual peripherals, on the simulator or on real bluetoothd, and the truth to compare it with.
    kit(
        "Kits/BlueZKit",
        ["GattherdDBus", "GattherdProcess", "GattherdSync", "TestKit", "gattherd", "gattherd-sim"]
    ),
    // The programs of the documentation, built with a user's default settings.
    .target(
        name: "BluetoothExamples",
        dependencies: ["GattherdBlueZ", "GattherdBluetoothTesting"],
        path: "Tests/Radio/BluetoothExamples"
    ),
    // The programs of docs/transducers.md, built with a user's default settings.
    .target(
        name: "TransducerExamples",
        dependencies: ["GattherdTransducer"],
        path: "Tests/Base/TransducerExamples"
    ),
    // A state-driven view in a terminal: `swift run gattherd-demo --simulated`.
    .executableTarget(
        name: "gattherd-demo",
        dependencies: ["BluetoothExamples", "GattherdBluetoothTesting"],
        path: "Tests/Radio/BluetoothDemo"
    ),
    // Costs, compared with other ways to do the same; `make bench` runs it, optimised.
    .executableTarget(
        name: "benchmarks",
        dependencies: [
            "CSQLite", "GattherdBluetooth", "GattherdDaemon", "GattherdGATT", "GattherdHistory", "GattherdLog",
            "GattherdModel", "GattherdOutputs", "GattherdPostgres", "GattherdProfiles", "GattherdSync", "TestKit",
        ],
        path: "Tests/Benchmarks",
        // Python and C: the load of a whole gateway, and the collectors that it is compared with.
        exclude: ["Load", "peers"],
        swiftSettings: settings
    ),
]

let moduleTests: [Target] = [
    tests("Base/GattherdSyncTests", ["CLinux", "GattherdLog", "GattherdMachines", "GattherdSync", "TestKit"]),
    tests("Base/GattherdProcessTests", ["GattherdProcess"]),
    tests(
        "Base/GattherdTransducerTests",
        [
            "GattherdGATT", "GattherdMachines", "GattherdModel", "GattherdSync", "GattherdTransducer", "TestKit",
            "TransducerExamples",
        ]
    ),
    tests("Base/GattherdYAMLTests", ["GattherdYAML", "TestKit"]),
    tests("Base/GattherdHTTPClientTests", ["GattherdHTTPClient", "GattherdSync", "TestKit"]),
    tests("Core/GattherdGATTTests", ["GattherdGATT"]),
    tests("Core/GattherdModelTests", ["GattherdModel"]),
    tests("Core/GattherdMachinesTests", ["GattherdGATT", "GattherdMachines", "GattherdModel", "TestKit"]),
    tests(
        "Radio/GattherdDBusTests",
        ["CDBus", "CLinux", "GattherdDBus", "GattherdMachines", "GattherdSync", "TestKit"]
    ),
    tests(
        "Radio/GattherdBluetoothTests",
        [
            "BlueZKit", "BluetoothExamples", "GattherdBlueZ", "GattherdBluetooth", "GattherdBluetoothTesting",
            "GattherdDBus", "GattherdGATT", "GattherdLog", "GattherdMachines", "GattherdModel", "GattherdSync",
            "TestKit",
        ]
    ),
    tests(
        "Radio/GattherdBlueZTests",
        [
            "GattherdBlueZ", "GattherdBluetooth", "GattherdDBus", "GattherdGATT", "GattherdLog", "GattherdModel",
            "GattherdSimulator", "GattherdSync", "TestKit",
        ]
    ),
    tests(
        "Profiles/GattherdProfilesTests",
        ["CGattherdProfile", "GattherdGATT", "GattherdModel", "GattherdProfiles", "GattherdYAML", "TestKit"]
    ),
    tests(
        "Store/GattherdHistoryTests",
        ["CSQLite", "GattherdHistory", "GattherdLog", "GattherdModel", "GattherdProcess", "GattherdSync", "TestKit"]
    ),
    tests("Store/GattherdExchangeTests", ["GattherdExchange", "GattherdHistory", "GattherdModel"]),
    tests("Outputs/GattherdMQTTTests", ["GattherdMQTT", "GattherdMachines"]),
    tests(
        "Outputs/GattherdDeliveryTests",
        [
            "COpenSSL", "GattherdDelivery", "GattherdGATT", "GattherdLog", "GattherdMQTT", "GattherdMachines",
            "GattherdModel", "GattherdSync", "TestKit",
        ]
    ),
    tests(
        "Outputs/GattherdOutputsTests",
        ["GattherdLog", "GattherdMachines", "GattherdModel", "GattherdOutputs", "GattherdSync"]
    ),
    tests(
        "Outputs/GattherdLinesTests",
        [
            "GattherdConfig", "GattherdGateway", "GattherdLines", "GattherdModel", "GattherdOutputs", "GattherdSync",
            "TestKit",
        ]
    ),
    tests(
        "Outputs/GattherdInfluxTests",
        [
            "GattherdConfig", "GattherdHTTPClient", "GattherdInflux", "GattherdLog", "GattherdMachines",
            "GattherdModel",
            "GattherdOutputs", "GattherdSync", "TestKit",
        ]
    ),
    tests("Outputs/GattherdHomeAssistantTests", ["GattherdHomeAssistant", "GattherdModel", "GattherdSync", "TestKit"]),
    tests(
        "Outputs/GattherdPostgresTests",
        [
            "GattherdConfig", "GattherdHistory", "GattherdLog", "GattherdMachines", "GattherdModel",
            "GattherdOutputs", "GattherdPostgres", "GattherdSync", "TestKit",
        ]
    ),
    tests(
        "Outputs/GattherdSparkplugTests",
        [
            "GattherdConfig", "GattherdGATT", "GattherdLog", "GattherdMQTT", "GattherdMachines",
            "GattherdModel", "GattherdOutputs", "GattherdProcess", "GattherdSparkplug", "GattherdSync", "TestKit",
        ]
    ),
    tests(
        "Outputs/GattherdHTTPTests",
        [
            "GattherdGATT", "GattherdHTTP", "GattherdLog", "GattherdMachines", "GattherdModel", "GattherdProcess",
            "GattherdSync", "TestKit",
        ]
    ),
    tests(
        "Core/GattherdConfigTests",
        ["GattherdConfig", "GattherdGATT", "GattherdGateway", "GattherdMachines", "GattherdModel", "TestKit"]
    ),
    tests(
        "Gateway/GattherdDaemonTests",
        [
            "GattherdBlueZ", "GattherdBluetooth", "GattherdConfig", "GattherdDBus", "GattherdDaemon", "GattherdGATT",
            "GattherdLog", "GattherdMachines", "GattherdModel", "GattherdSimulator", "GattherdSync", "TestKit",
        ]
    ),
    tests(
        "Gateway/GattherdGatewayTests",
        [
            "GattherdBluetooth", "GattherdConfig", "GattherdDaemon", "GattherdDelivery", "GattherdGATT",
            "GattherdGateway", "GattherdHTTP", "GattherdHistory", "GattherdLog", "GattherdModel", "GattherdProcess",
            "GattherdProfiles", "GattherdSparkplug", "GattherdSync", "TestKit",
        ]
    ),
    // The output of commands, without a daemon.
    tests(
        "Gateway/CommandTests",
        [
            "GattherdBluetooth", "GattherdCapture", "GattherdConfig", "GattherdDBus", "GattherdGATT",
            "GattherdGateway", "GattherdHistory", "GattherdModel", "GattherdProcess", "GattherdProfiles",
            "GattherdSync", "TestKit", "gattherd",
        ]
    ),
    tests("Tools/GattherdCaptureTests", ["GattherdCapture", "GattherdGATT", "GattherdModel", "TestKit"]),
    tests(
        "Tools/GattherdSimulatorTests",
        [
            "GattherdDBus", "GattherdGATT", "GattherdMachines", "GattherdSimulator", "GattherdSync", "GattherdYAML",
            "TestKit",
        ]
    ),
]

let systemTests: [Target] = [
    // The programs themselves, on a real bus, a real broker and a real file.
    tests(
        "System/IntegrationTests",
        [
            "CLinux", "GattherdHistory", "GattherdLog", "GattherdModel", "GattherdProcess", "GattherdSync", "TestKit",
            "gattherd", "gattherd-sim",
        ]
    ),
    // A whole gateway that is killed at any instant, loses power, fills its disk, or has a day's backlog.
    tests(
        "System/GatewayTests",
        ["BlueZKit", "GattherdHistory", "GattherdLog", "GattherdModel", "GattherdProcess", "TestKit"]
    ),
    // A gateway and the peripherals' own log as the truth; `make test-bluez` runs it on real bluetoothd.
    tests("System/BlueZScenarioTests", ["BlueZKit", "GattherdProcess", "TestKit"]),
    // The behaviour of org.bluez, fact by fact, and calls that crash it; on both stacks.
    tests(
        "System/BlueZFactTests",
        [
            "BlueZKit", "GattherdBlueZ", "GattherdBluetooth", "GattherdDBus", "GattherdGATT", "GattherdLog",
            "GattherdModel", "GattherdProcess", "GattherdSync", "TestKit",
        ]
    ),
]

let package = Package(
    name: "gattherd",
    products: [
        .executable(name: "gattherd", targets: ["gattherd"]),
        .executable(name: "gattherd-sim", targets: ["gattherd-sim"]),
        .library(name: "GattherdBluetooth", targets: ["GattherdBluetooth", "GattherdBlueZ"]),
        .library(name: "GattherdBluetoothTesting", targets: ["GattherdBluetoothTesting"]),
        .library(name: "GattherdTransducer", targets: ["GattherdTransducer"]),
        .library(name: "ProfileKit", targets: ["ProfileKit", "GattherdGATT"]),
        .library(name: "HeartRate", type: .dynamic, targets: ["HeartRateExport"]),
        .library(name: "NumberService", type: .dynamic, targets: ["NumberServiceExport"]),
    ],
    targets: c + base + core + radio + profiles + store + outputs + gateway + tools
        + plugin("HeartRate") + plugin("NumberService")
        + kits + moduleTests + systemTests
)
