import Foundation
public import GattherdProcess
import GattherdSync
public import TestKit

/// A gateway with everything around it: a stack with peripherals, a broker, a file, and the daemon as a child that may
/// be killed.
public final class Gateway: Sendable {
    public let neighbourhood: Neighbourhood
    public let stack: any BluetoothStack
    public let broker: Broker
    public let database: SQLiteShell
    private let folder: TemporaryFolder
    private let settings: String
    private let errors: OutputFile
    private let daemon = Locked<ChildProcess?>(nil)

    /// Starts a stack and a broker; the daemon not yet.
    public init(_ neighbourhood: Neighbourhood, on kind: StackKind = .current) async throws {
        self.neighbourhood = neighbourhood
        folder = try TemporaryFolder()
        broker = try Broker()
        try await broker.start()
        stack = try await kind.start(neighbourhood.scenario)
        let path = folder.file("history.db")
        database = SQLiteShell(path)
        let logs = ProcessInfo.processInfo.environment["GATTHERD_LOGS"]
        errors = try OutputFile(logs.map { $0 + "/daemon.log" } ?? folder.file("daemon.log"))
        settings = try folder.write(
            """
            gateway: test
            bluetooth: {bus: "\(stack.bus)"}
            history: {path: \(path)}
            mqtt: {url: "mqtt://127.0.0.1:\(broker.port)"}
            devices:
            \(neighbourhood.settings)
            """,
            to: "gattherd.yaml"
        )
    }

    deinit {
        daemon.withLock { $0?.signal(SIGKILL) }
    }

    /// Gives an order to the peripherals or their stack.
    public func order(_ words: String...) async throws {
        try await stack.order(words)
    }

    // MARK: - The daemon

    public func startDaemon() throws -> ChildProcess {
        let child = try ChildProcess(
            Programs.path("gattherd"),
            ["run", "--config", settings],
            errors: .descriptor(errors.descriptor)
        )
        daemon.withLock { $0 = child }
        return child
    }

    /// Runs a command of gattherd on this gateway's configuration; its exit status and standard output.
    public func command(_ words: String...) async throws -> (Int32, String) {
        try await Programs.run(Programs.path("gattherd"), words + ["--config", settings])
    }

    /// What the daemon has said so far.
    public var log: String { errors.text }

    // MARK: - Waiting

    /// Waits until all configured devices are ready, each of them at least `times` times.
    public func waitUntilReady(times: Int = 1) async throws {
        for (device, _) in neighbourhood.devices {
            try await eventually { try await self.readyCount(device) >= times }
        }
    }

    /// How often a device has become ready.
    public func readyCount(_ device: String) async throws -> Int {
        let sql = """
            SELECT count(*) FROM events WHERE kind = 'link' AND device = '\(device)'
            AND json_extract(detail, '$.to') = 'ready'
            """
        return Int((try? await database.value(sql)) ?? "") ?? 0
    }

    /// Waits until history has `count` notified readings more than now of every device.
    public func waitForReadings(_ count: Int) async throws {
        let sql = "SELECT count(DISTINCT seq) FROM history WHERE source <> 'read' AND device = "
        var goals: [String: Int] = [:]
        for (device, _) in neighbourhood.devices {
            goals[device] = count + (Int((try? await database.value(sql + "'\(device)'")) ?? "") ?? 0)
        }
        for (device, goal) in goals {
            try await eventually { (Int((try? await self.database.value(sql + "'\(device)'")) ?? "") ?? 0) >= goal }
        }
    }

    /// Ends the sending of all configured devices.
    public func silence() async throws {
        for (device, _) in neighbourhood.devices { try await order("rate", device, "0") }
    }

    /// Waits until the broker has acknowledged what is committed.
    public func waitUntilDelivered() async throws {
        let sql = "SELECT (SELECT max(seq) FROM history) = (SELECT value FROM state WHERE key = 'cursor')"
        try await eventually { (try? await self.database.value(sql)) == "1" }
    }
}
