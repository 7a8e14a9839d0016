import Foundation
import GattherdProcess
import GattherdSync
import Glibc
import TestKit

/// bluetoothd with the peripherals of `Tests/RealBlueZ/peripherals` behind the kernel's virtual controllers.
///
/// Works only in the machine of `Tests/RealBlueZ`, since it removes all bonds and caches of bluetoothd at its start.
final class RealStack: BluetoothStack {
    let bus: String
    let truthPath: String
    private let folder: TemporaryFolder
    private let ordersPath: String
    private let logs: URL
    private let privateBus: PrivateBus
    private let peripherals: ChildProcess
    private let bluetoothd: Locked<ChildProcess>

    private static let state = URL(filePath: "/var/lib/bluetooth")
    private static let runFolder = ProcessInfo.processInfo.environment["GATTHERD_LOGS"] ?? NSTemporaryDirectory()

    init(_ scenario: String) async throws {
        folder = try TemporaryFolder()
        truthPath = folder.file("truth")
        ordersPath = folder.file("orders")
        logs = URL(filePath: Self.runFolder)
        for entry in (try? FileManager.default.contentsOfDirectory(atPath: Self.state.path)) ?? [] {
            try FileManager.default.removeItem(at: Self.state.appending(path: entry))
        }
        // The system bus with Debian's own policy, at an address of the test's.
        privateBus = try PrivateBus(configurationFile: "/usr/share/dbus-1/system.conf")
        bus = privateBus.address
        let file = try folder.write(scenario, to: "scenario.yaml")
        peripherals = try await Self.startPeripherals(
            ["--truth", truthPath, "--orders", ordersPath, file],
            folder,
            logs
        )
        bluetoothd = Locked(try Self.startBluetoothd(on: bus, logs))
        try await waitForPower()
    }

    deinit {
        for child in [bluetoothd.withLock { $0 }, peripherals] { child.signal(SIGKILL) }
    }

    func order(_ words: [String]) async throws {
        switch words.first {
        case "power": try await power(isOn: words.last == "on")
        case "freeze-daemon": bluetoothd.withLock { $0.signal(words.last == "on" ? SIGSTOP : SIGCONT) }
        case "restart-daemon": try await restart(after: words)
        default: try await orderPeripherals(words)
        }
    }

    func stop() async throws {
        let parts = [("bluetoothd", bluetoothd.withLock { $0 }), ("peripherals", peripherals)]
        var crashed = parts.filter { $0.1.exitStatus != nil }.map(\.0)
        if privateBus.exitStatus != nil { crashed.append("dbus-daemon") }
        for (_, child) in parts {
            child.signal(SIGTERM)
            _ = await child.wait()
        }
        await privateBus.stop()
        guard crashed.isEmpty else {
            throw StackCrashed(description: "exited unexpectedly: \(crashed.joined(separator: ", ")); see \(logs.path)")
        }
    }

    // MARK: - Orders

    private func orderPeripherals(_ words: [String]) async throws {
        let errors = folder.file("ctl.err")
        let arguments = ["-m", "peripherals", "ctl", "--orders", ordersPath] + words
        let (code, _) = try await Programs.run("python3", arguments, errors: errors)
        guard code == 0 else { throw OrderRefused(words, try OutputFile(errors).text) }
    }

    private func power(isOn: Bool) async throws {
        try await eventually {
            _ = try await self.busctl(
                "org.freedesktop.DBus.Properties.Set",
                "string:org.bluez.Adapter1",
                "string:Powered",
                "variant:boolean:\(isOn)"
            )
            return try await self.isPowered() == isOn
        }
    }

    /// Performs `restart-daemon [MILLISECONDSms] [graceful]` like the simulator.
    private func restart(after words: [String]) async throws {
        let isGraceful = words.contains("graceful")
        let pause = words.compactMap { $0.hasSuffix("ms") ? Int($0.dropLast(2)) : nil }.first ?? 0
        let old = bluetoothd.withLock { $0 }
        guard old.exitStatus == nil else { throw StackCrashed(description: "bluetoothd exited unexpectedly") }
        old.signal(isGraceful ? SIGTERM : SIGKILL)
        _ = await old.wait()
        try await Task.sleep(for: .milliseconds(pause))
        let new = try Self.startBluetoothd(on: bus, logs)
        bluetoothd.withLock { $0 = new }
    }

    // MARK: - Parts

    private static func startPeripherals(
        _ arguments: [String],
        _ folder: TemporaryFolder,
        _ logs: URL
    ) async throws -> ChildProcess {
        let output = try OutputFile(folder.file("peripherals.out"))
        let errors = try OutputFile(logs.appending(path: "peripherals.log").path)
        let program = try ChildProcess(
            "python3",
            ["-m", "peripherals", "run"] + arguments,
            output: .descriptor(output.descriptor),
            errors: .descriptor(errors.descriptor)
        )
        try await eventually { !output.lines.isEmpty || program.exitStatus != nil }
        guard program.exitStatus == nil else {
            throw StackCrashed(description: "the peripherals did not start: \(errors.text.suffix(2000))")
        }
        return program
    }

    private static func startBluetoothd(on bus: String, _ logs: URL) throws -> ChildProcess {
        let log = try OutputFile(logs.appending(path: "bluetoothd.log").path)
        return try ChildProcess(
            "/usr/libexec/bluetooth/bluetoothd",
            ["-n"],
            environment: ["DBUS_SYSTEM_BUS_ADDRESS=\(bus)"],
            output: .descriptor(log.descriptor),
            errors: .descriptor(log.descriptor)
        )
    }

    // MARK: - The adapter

    /// Waits until bluetoothd has powered the adapter, shortly after its start.
    private func waitForPower() async throws {
        try await eventually {
            guard self.bluetoothd.withLock({ $0 }).exitStatus == nil else {
                throw StackCrashed(description: "bluetoothd did not start; see \(self.logs.path)")
            }
            return try await self.isPowered()
        }
    }

    private func isPowered() async throws -> Bool {
        try await busctl("org.freedesktop.DBus.Properties.Get", "string:org.bluez.Adapter1", "string:Powered")
            .contains("boolean true")
    }

    /// Calls a method of the adapter.
    ///
    /// Returns the empty string on failure.
    private func busctl(_ method: String, _ arguments: String...) async throws -> String {
        let target = ["--bus=\(bus)", "--print-reply", "--dest=org.bluez", "/org/bluez/hci0", method]
        return try await Programs.run("dbus-send", target + arguments, errors: "/dev/null").1
    }
}
