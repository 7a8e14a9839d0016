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
    public let databasePath: String
    private let folder: TemporaryFolder
    private let settings: String
    private let errors: OutputFile
    private let daemon = Locked<ChildProcess?>(nil)

    /// Starts a stack and a broker; the daemon not yet.
    ///
    /// - Parameters:
    ///   - neighbourhood: The peripherals.
    ///   - kind: What they are on.
    ///   - disk: The folder for the history, if not the gateway's own.
    ///   - history: More members of the configuration's `history`, in YAML's flow style.
    /// - Throws: What keeps a part from starting.
    public init(
        _ neighbourhood: Neighbourhood,
        on kind: StackKind = .current,
        disk: String? = nil,
        history: String = ""
    ) async throws {
        self.neighbourhood = neighbourhood
        folder = try TemporaryFolder()
        broker = try Broker()
        try await broker.start()
        stack = try await kind.start(neighbourhood.scenario)
        let path = disk.map { $0 + "/history.db" } ?? folder.file("history.db")
        databasePath = path
        database = SQLiteShell(path)
        let logs = ProcessInfo.processInfo.environment["GATTHERD_LOGS"]
        errors = try OutputFile(logs.map { $0 + "/daemon.log" } ?? folder.file("daemon.log"))
        settings = try folder.write(
            """
            gateway: test
            bluetooth: {bus: "\(stack.bus)"}
            history: {path: \(path)\(history.isEmpty ? "" : ", " + history)}
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

    /// Gives an order to the peripherals of all configured devices at once: a verb, each one's name, and words.
    public func orderAll(_ verb: String, _ words: String...) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (device, _) in neighbourhood.devices {
                group.addTask { try await self.stack.order([verb, device] + words) }
            }
            try await group.waitForAll()
        }
    }

    /// Changes the lines of the configuration's file; the daemon hears of it when it is told.
    public func editConfiguration(_ change: ([Substring]) -> [Substring]) throws {
        let lines = try String(contentsOfFile: settings, encoding: .utf8).split(separator: "\n")
        try change(lines).joined(separator: "\n").write(toFile: settings, atomically: true, encoding: .utf8)
    }

    // MARK: - The daemon

    /// Starts the daemon, whose log goes to a file that ``log`` reads unless it is told where.
    public func startDaemon(log: ChildProcess.Output? = nil) throws -> ChildProcess {
        let child = try ChildProcess(
            Programs.path("gattherd"),
            ["run", "--config", settings],
            errors: log ?? .descriptor(errors.descriptor)
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
        try await eventually {
            let counts = try await self.readyCounts()
            return self.neighbourhood.devices.allSatisfy { counts[$0.name, default: 0] >= times }
        }
    }

    /// How often a device has become ready.
    public func readyCount(_ device: String) async throws -> Int {
        try await readyCounts()[device, default: 0]
    }

    /// Waits until history has `count` notified readings more than now of every device, or of the one that is named.
    public func waitForReadings(_ count: Int, of device: String? = nil) async throws {
        let names = neighbourhood.devices.map(\.name).filter { device == nil || $0 == device }
        let before = try await readingCounts()
        try await eventually {
            let now = try await self.readingCounts()
            return names.allSatisfy { now[$0, default: 0] >= before[$0, default: 0] + count }
        }
    }

    /// Waits until history has an event of a kind with a state.
    public func waitForEvent(_ kind: String, _ state: String, times: Int = 1) async throws {
        let condition = "kind = '\(kind)' AND json_extract(detail, '$.state') = '\(state)'"
        let sql = "SELECT count(*) >= \(times) FROM events WHERE \(condition)"
        try await eventually { (try? await self.database.value(sql)) == "1" }
    }

    private func readyCounts() async throws -> [String: Int] {
        try await counts(
            """
            SELECT device, count(*) FROM events WHERE kind = 'link' AND json_extract(detail, '$.to') = 'ready'
            GROUP BY device
            """
        )
    }

    private func readingCounts() async throws -> [String: Int] {
        try await counts("SELECT device, count(DISTINCT seq) FROM history WHERE source <> 'read' GROUP BY device")
    }

    /// Rows of a device and a number; none while there is no file yet.
    private func counts(_ sql: String) async throws -> [String: Int] {
        let rows = (try? await database.rows(sql)) ?? []
        return Dictionary(rows.map { ($0[0], Int($0[1]) ?? 0) }) { first, _ in first }
    }

    /// Ends the sending of all configured devices.
    public func silence() async throws {
        try await orderAll("rate", "0")
    }

    /// Waits until the broker has acknowledged what is committed.
    public func waitUntilDelivered() async throws {
        let sql = "SELECT (SELECT max(seq) FROM history) = (SELECT value FROM state WHERE key = 'cursor')"
        try await eventually { (try? await self.database.value(sql)) == "1" }
    }
}
