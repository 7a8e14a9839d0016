import Foundation
public import GattherdProcess
import GattherdSync
public import TestKit

/// A gateway with its environment: a Bluetooth stack with peripherals, a broker, a history file and the daemon process.
public final class Gateway: Sendable {
    public let peripherals: TestPeripherals
    public let stack: any BluetoothStack
    public let broker: Broker
    public let database: SQLiteShell
    public let databasePath: String
    private let folder: TemporaryFolder
    private let settings: String
    private let errors: OutputFile
    private let daemon = Locked<ChildProcess?>(nil)

    /// Starts a stack and a broker, but not the daemon.
    ///
    /// - Parameters:
    ///   - peripherals: The peripherals.
    ///   - kind: The Bluetooth stack.
    ///   - disk: The folder for the history, if not the gateway's own.
    ///   - history: Additional members of `history` in the configuration, in YAML flow style.
    ///   - files: The texts of files in the gateway's folder, by name.
    ///   - outputs: Further sections of the configuration, with `FOLDER` for the gateway's folder.
    /// - Throws: An error if a part cannot be started.
    public init(
        _ peripherals: TestPeripherals,
        on kind: StackKind = .current,
        disk: String? = nil,
        history: String = "",
        files: [String: String] = [:],
        outputs: String = ""
    ) async throws {
        self.peripherals = peripherals
        folder = try TemporaryFolder()
        for (name, text) in files { try folder.write(text, to: name) }
        // By default, mosquitto drops messages for a subscriber that gets no processor time for a quarter of a second.
        broker = try Broker(settings: ["max_queued_messages 0"])
        try await broker.start()
        stack = try await kind.start(peripherals.scenario)
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
            \(outputs.replacing("FOLDER", with: folder.path))
            devices:
            \(peripherals.settings)
            """,
            to: "gattherd.yaml"
        )
    }

    deinit {
        daemon.withLock { $0?.signal(SIGKILL) }
    }

    /// Sends an order to the peripherals or their stack.
    public func order(_ words: String...) async throws {
        try await stack.order(words)
    }

    /// Sends an order to all configured devices in parallel: a verb, the device's name, and words.
    public func orderAll(_ verb: String, _ words: String...) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (device, _) in peripherals.devices {
                group.addTask { try await self.stack.order([verb, device] + words) }
            }
            try await group.waitForAll()
        }
    }

    /// Changes the lines of the configuration file.
    ///
    /// The daemon reads it at the next reload.
    public func editConfiguration(_ change: ([Substring]) -> [Substring]) throws {
        let lines = try String(contentsOfFile: settings, encoding: .utf8).split(separator: "\n")
        try change(lines).joined(separator: "\n").write(toFile: settings, atomically: true, encoding: .utf8)
    }

    // MARK: - The daemon

    /// Starts the daemon.
    ///
    /// Its log is written to the file of ``log`` by default.
    public func startDaemon(log: ChildProcess.Output? = nil) throws -> ChildProcess {
        let child = try ChildProcess(
            Programs.path("gattherd"),
            ["run", "--config", settings],
            errors: log ?? .descriptor(errors.descriptor)
        )
        daemon.withLock { $0 = child }
        return child
    }

    /// Runs a gattherd command with this gateway's configuration.
    ///
    /// Returns exit status and standard output.
    public func command(_ words: String...) async throws -> (Int32, String) {
        try await Programs.run(Programs.path("gattherd"), words + ["--config", settings])
    }

    /// The content of a file in the gateway's folder.
    public func content(of file: String) throws -> String {
        try String(contentsOfFile: folder.file(file), encoding: .utf8)
    }

    /// The daemon's log so far.
    public var log: String { errors.text }

    // MARK: - Waiting

    /// Waits until each configured device has become ready at least `times` times.
    public func waitUntilReady(times: Int = 1) async throws {
        try await eventually {
            let counts = try await self.readyCounts()
            return self.peripherals.devices.allSatisfy { counts[$0.name, default: 0] >= times }
        }
    }

    /// The number of times that a device has become ready.
    public func readyCount(_ device: String) async throws -> Int {
        try await readyCounts()[device, default: 0]
    }

    /// Waits for `count` more notified readings of every device, or of the named one.
    public func waitForReadings(_ count: Int, of device: String? = nil) async throws {
        let names = peripherals.devices.map(\.name).filter { device == nil || $0 == device }
        let before = try await readingCounts()
        try await eventually {
            let now = try await self.readingCounts()
            return names.allSatisfy { now[$0, default: 0] >= before[$0, default: 0] + count }
        }
    }

    /// Waits for events of a kind with a state.
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

    /// Counts by device.
    ///
    /// Empty while the file does not exist yet.
    private func counts(_ sql: String) async throws -> [String: Int] {
        let rows = (try? await database.rows(sql)) ?? []
        return Dictionary(rows.map { ($0[0], Int($0[1]) ?? 0) }) { first, _ in first }
    }

    /// Stops the notifications of all configured devices.
    public func silence() async throws {
        try await orderAll("rate", "0")
    }

    /// Waits until the broker has acknowledged all committed readings.
    public func waitUntilDelivered() async throws {
        let sql = "SELECT (SELECT max(seq) FROM history) = (SELECT cursor FROM consumer WHERE name = 'mqtt')"
        try await eventually { (try? await self.database.value(sql)) == "1" }
    }
}
