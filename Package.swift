// swift-tools-version: 6.3
import PackageDescription

/// The settings of every Swift target, tests included.
let house: [SwiftSetting] = [
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

/// A room: its folder is `Sources/<name>`, and it may import exactly what stands here.
func room(_ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
    .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: house)
}

/// The tests of one room.
func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: house)
}

/// A native profile: `Plugins/<name>`, one shared library that gattherd opens at run time.
///
/// Its entry is a target of its own, because all tests are linked into one program and that can have only one entry.
func plugin(_ name: String) -> [Target] {
    [
        .target(
            name: name,
            dependencies: ["GattherdGATT", "ProfileKit"],
            path: "Plugins/\(name)/Sources",
            swiftSettings: house
        ),
        .target(
            name: "\(name)Export",
            dependencies: [.target(name: name), "ProfileKit"],
            path: "Plugins/\(name)/Export",
            swiftSettings: house
        ),
        .testTarget(
            name: "\(name)Tests",
            dependencies: [.target(name: name), "GattherdGATT", "ProfileKit"],
            path: "Plugins/\(name)/Tests",
            swiftSettings: house
        ),
    ]
}

/// A C library of Debian's, found by pkg-config.
func debian(_ name: String, pkgConfig: String, package: String) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

let package = Package(
    name: "gattherd",
    products: [
        .executable(name: "gattherd", targets: ["gattherd"]),
        .executable(name: "gattherd-sim", targets: ["gattherd-sim"]),
        .library(name: "GattherdBluetooth", targets: ["GattherdBluetooth", "GattherdBlueZ"]),
        .library(name: "GattherdBluetoothTesting", targets: ["GattherdBluetoothTesting"]),
        .library(name: "ProfileKit", targets: ["ProfileKit", "GattherdGATT"]),
        .library(name: "HeartRate", type: .dynamic, targets: ["HeartRateExport"]),
        .library(name: "NumberService", type: .dynamic, targets: ["NumberServiceExport"]),
    ],
    targets: [
        // The C contract with plugins: one header.
        .target(name: "CGattherdProfile"),
        // What Swift's Glibc overlay does not export: epoll, eventfd, signalfd, sockets' macros.
        .systemLibrary(name: "CLinux"),
        // What is resident without being used: pages of code, and what is free of the heap.
        .target(name: "CProgramMemory"),
        debian("CDBus", pkgConfig: "dbus-1", package: "libdbus-1-dev"),
        debian("CSQLite", pkgConfig: "sqlite3", package: "libsqlite3-dev"),
        // TLS for MQTT, and AES for advertisements.
        debian("COpenSSL", pkgConfig: "openssl", package: "libssl-dev"),
        debian("CYAML", pkgConfig: "yaml-0.1", package: "libyaml-dev"),
        debian("CMicroHTTPD", pkgConfig: "libmicrohttpd", package: "libmicrohttpd-dev"),
        debian("CSystemd", pkgConfig: "libsystemd", package: "libsystemd-dev"),

        // Values of the field: UUIDs, addresses, payload cursor, assigned numbers.
        room("GattherdGATT"),
        // What a thing is: device, stream, reading, sample, link state, fault; the ports that rooms implement.
        room("GattherdModel", ["GattherdGATT"]),
        // What happens next: link, herd, MQTT session, throttle, backoff. Pure values.
        room("GattherdMachines", ["GattherdGATT", "GattherdModel"]),
        // YAML text with positions: the one reader that config, profiles and scenarios share.
        room("GattherdYAML", ["CYAML"]),
        // Text to typed configuration, or errors with line and column.
        room("GattherdConfig", ["GattherdGATT", "GattherdModel", "GattherdYAML"]),
        // What we say and count.
        room("GattherdLog", ["GattherdSync"]),
        // How threads share: locks, boards, the event loop that is an executor.
        room("GattherdSync", ["CLinux"]),
        // Child processes: start, signal, wait; our own: signals, and what it holds of memory without using it.
        room("GattherdProcess", ["CLinux", "CProgramMemory", "GattherdSync"]),
        // The bus: one connection, one thread, one actor. libdbus-1 connects and marshals.
        room("GattherdDBus", ["CDBus", "CLinux", "GattherdSync"]),
        // The client API for Swift programmers. No D-Bus type in it.
        room("GattherdBluetooth", ["GattherdGATT", "GattherdModel", "GattherdSync"]),
        // GattherdBluetooth on org.bluez; one file maps every error name.
        room(
            "GattherdBlueZ",
            [
                "CLinux", "GattherdBluetooth", "GattherdDBus", "GattherdGATT", "GattherdLog", "GattherdModel",
                "GattherdSync",
            ]
        ),
        // What a native profile is written with.
        room("ProfileKit", ["CGattherdProfile", "GattherdGATT"]),
        // What a peripheral said, in a file: for captures, replays and the simulator.
        room("GattherdCapture", ["GattherdGATT", "GattherdModel", "GattherdYAML"]),
        // The registry of profiles: native loader, declarative compiler.
        room(
            "GattherdProfiles",
            ["CGattherdProfile", "COpenSSL", "GattherdConfig", "GattherdGATT", "GattherdModel", "GattherdYAML"]
        ),
        // SQLite: log, series, events, rejects, queries.
        room("GattherdHistory", ["CSQLite", "GattherdLog", "GattherdModel", "GattherdSync"]),
        // History as people and other programs write it: points in time, charts, JSON lines, line protocol.
        room("GattherdExchange", ["GattherdConfig", "GattherdHistory", "GattherdModel"]),
        // The MQTT client: packets, session, connection, TLS. Nothing of what is delivered.
        room("GattherdMQTT", ["CLinux", "COpenSSL", "GattherdSync"]),
        // MQTT delivery: readings, cursor, topics, controls.
        room(
            "GattherdDelivery",
            ["GattherdLog", "GattherdMQTT", "GattherdMachines", "GattherdModel", "GattherdSync"]
        ),
        // HTTP: server, access, metrics, API, dashboard.
        room(
            "GattherdHTTP",
            [
                "CLinux", "CMicroHTTPD", "GattherdDashboard", "GattherdGATT", "GattherdLog", "GattherdModel",
                "GattherdSync",
            ]
        ),
        // The dashboard's files, compiled in; apart, for a compiler is slow with so many numbers.
        .target(
            name: "GattherdDashboard",
            resources: [.embedInCode("Files")],
            swiftSettings: house
        ),
        // Runners that carry out what machines ask for; lifecycle.
        room(
            "GattherdDaemon",
            [
                "CLinux", "GattherdBluetooth", "GattherdGATT", "GattherdLog", "GattherdMachines", "GattherdModel",
                "GattherdSync",
            ]
        ),
        // A virtual org.bluez: peripherals and faults by scenario.
        room(
            "GattherdSimulator",
            [
                "GattherdCapture", "GattherdDBus", "GattherdGATT", "GattherdProcess", "GattherdSync", "GattherdYAML",
            ],
            exclude: ["README.md"]
        ),

        // GattherdBluetooth on simulated peripherals, in one call: for tests of its users.
        room("GattherdBluetoothTesting", ["GattherdBlueZ", "GattherdSimulator"]),

        // The command line: arguments, composition, exit code.
        .executableTarget(
            name: "gattherd",
            dependencies: [
                "CLinux", "CSystemd", "GattherdBlueZ", "GattherdBluetooth", "GattherdCapture", "GattherdConfig",
                "GattherdDBus", "GattherdDaemon", "GattherdDelivery", "GattherdExchange", "GattherdGATT",
                "GattherdHTTP",
                "GattherdHistory", "GattherdLog", "GattherdMQTT", "GattherdMachines", "GattherdModel",
                "GattherdProcess", "GattherdProfiles", "GattherdSimulator", "GattherdSync",
            ],
            swiftSettings: house
        ),
        // The simulator as a program.
        .executableTarget(
            name: "gattherd-sim",
            dependencies: ["GattherdDBus", "GattherdGATT", "GattherdProcess", "GattherdSimulator", "GattherdSync"],
            path: "Sources/gattherd-sim",
            swiftSettings: house
        ),

        // What tests share: a private bus, a throwaway broker, temporary folders.
        .target(
            name: "TestKit",
            dependencies: ["CLinux", "GattherdProcess", "GattherdSync"],
            path: "Tests/TestKit",
            swiftSettings: house
        ),
        // A whole gateway with virtual peripherals, on the simulator or on real bluetoothd, and the truth to compare it with.
        .target(
            name: "BlueZKit",
            dependencies: [
                "GattherdDBus", "GattherdProcess", "GattherdSync", "TestKit", "gattherd", "gattherd-sim",
            ],
            path: "Tests/BlueZKit",
            swiftSettings: house
        ),
        // The programs of the documentation, built as their readers build them.
        .target(
            name: "BluetoothExamples",
            dependencies: ["GattherdBlueZ", "GattherdBluetoothTesting"],
            path: "Tests/BluetoothExamples"
        ),
        // What costs how much, compared with other ways to do it; `make bench` runs it, optimised.
        .executableTarget(
            name: "benchmarks",
            dependencies: [
                "CSQLite", "GattherdGATT", "GattherdHistory", "GattherdLog", "GattherdModel", "GattherdProfiles",
                "GattherdSync",
            ],
            path: "Tests/Benchmarks",
            // Python: what a whole gateway costs, and the peer that it is compared with.
            exclude: ["Load", "peers"],
            swiftSettings: house
        ),
        tests("GattherdGATTTests", ["GattherdGATT"]),
        tests("GattherdModelTests", ["GattherdModel"]),
        tests("GattherdMachinesTests", ["GattherdGATT", "GattherdMachines", "GattherdModel"]),
        tests("GattherdYAMLTests", ["GattherdYAML"]),
        tests("GattherdCaptureTests", ["GattherdCapture", "GattherdGATT", "GattherdModel"]),
        tests(
            "GattherdConfigTests",
            ["GattherdConfig", "GattherdGATT", "GattherdMachines", "GattherdModel", "TestKit"]
        ),
        tests("GattherdProcessTests", ["GattherdProcess"]),
        tests("GattherdSyncTests", ["CLinux", "GattherdLog", "GattherdMachines", "GattherdSync", "TestKit"]),
        tests("GattherdDBusTests", ["CDBus", "CLinux", "GattherdDBus", "GattherdMachines", "GattherdSync", "TestKit"]),
        tests(
            "GattherdBluetoothTests",
            [
                "BlueZKit", "BluetoothExamples", "GattherdBlueZ", "GattherdBluetooth", "GattherdBluetoothTesting",
                "GattherdDBus", "GattherdGATT", "GattherdModel", "GattherdSync", "TestKit",
            ]
        ),
        tests(
            "GattherdBlueZTests",
            [
                "GattherdBlueZ", "GattherdBluetooth", "GattherdDBus", "GattherdGATT", "GattherdLog", "GattherdModel",
                "GattherdSimulator", "GattherdSync", "TestKit",
            ]
        ),
        tests(
            "GattherdProfilesTests",
            ["CGattherdProfile", "GattherdGATT", "GattherdModel", "GattherdProfiles", "GattherdYAML", "TestKit"]
        ),
        tests(
            "GattherdHistoryTests",
            [
                "CSQLite", "GattherdHistory", "GattherdLog", "GattherdModel", "GattherdProcess", "GattherdSync",
                "TestKit",
            ]
        ),
        tests("GattherdExchangeTests", ["GattherdExchange", "GattherdHistory", "GattherdModel"]),
        tests("GattherdMQTTTests", ["GattherdMQTT", "GattherdMachines"]),
        tests(
            "GattherdDeliveryTests",
            [
                "COpenSSL", "GattherdDelivery", "GattherdGATT", "GattherdLog", "GattherdMQTT", "GattherdMachines",
                "GattherdModel", "GattherdSync", "TestKit",
            ]
        ),
        tests(
            "GattherdHTTPTests",
            [
                "GattherdGATT", "GattherdHTTP", "GattherdLog", "GattherdMachines", "GattherdModel", "GattherdProcess",
                "GattherdSync", "TestKit",
            ]
        ),
        tests(
            "GattherdSimulatorTests",
            [
                "GattherdDBus", "GattherdGATT", "GattherdMachines", "GattherdSimulator", "GattherdSync", "GattherdYAML",
                "TestKit",
            ]
        ),
        tests(
            "GattherdDaemonTests",
            [
                "GattherdBlueZ", "GattherdBluetooth", "GattherdConfig", "GattherdDBus", "GattherdDaemon",
                "GattherdGATT", "GattherdLog", "GattherdMachines", "GattherdModel", "GattherdSimulator",
                "GattherdSync", "TestKit",
            ]
        ),
        // What the command line says to people.
        tests(
            "CommandTests",
            [
                "GattherdBluetooth", "GattherdConfig", "GattherdDBus", "GattherdGATT", "GattherdHistory",
                "GattherdModel", "GattherdProcess", "GattherdProfiles", "TestKit", "gattherd",
            ]
        ),
        // The programs themselves, on a real bus, a real broker and a real file.
        tests(
            "IntegrationTests",
            [
                "CLinux", "GattherdHistory", "GattherdLog", "GattherdModel", "GattherdProcess", "TestKit", "gattherd",
                "gattherd-sim",
            ]
        ),
        // What a whole gateway must not lose: killed at any instant, without power, on a full disk, with a day's backlog.
        tests(
            "GatewayTests",
            ["BlueZKit", "GattherdHistory", "GattherdLog", "GattherdModel", "GattherdProcess", "TestKit"]
        ),
        // What a gateway must bear, with the peripherals' own log as the truth; `make test-bluez` runs it on real bluetoothd.
        tests("BlueZScenarioTests", ["BlueZKit", "GattherdProcess", "TestKit"]),
        // What org.bluez does, fact by fact, and what our client must not do to it; on both stacks as well.
        tests(
            "BlueZFactTests",
            [
                "BlueZKit", "GattherdBlueZ", "GattherdBluetooth", "GattherdDBus", "GattherdGATT", "GattherdLog",
                "GattherdModel", "GattherdProcess", "GattherdSync", "TestKit",
            ]
        ),
    ] + plugin("HeartRate") + plugin("NumberService")
)
