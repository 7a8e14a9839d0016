import Foundation
import GattherdProcess
import TestKit

/// Everything that a gateway has around it, and the daemon itself as a child that may be killed.
final class Gateway: Sendable {
    let folder: TemporaryFolder
    let broker: Broker
    let database: SQLiteShell
    private let simulator: ChildProcess
    private let bus: String
    private let truthPath: String
    private let settings: String
    private let errors: OutputFile

    /// Starts a virtual org.bluez with `count` heart rate straps and a broker; the daemon not yet.
    init(straps count: Int, rate: Int) async throws {
        folder = try TemporaryFolder()
        broker = try Broker()
        try await broker.start()
        truthPath = folder.file("truth")
        errors = try OutputFile(folder.file("daemon.log"))
        let scenario = try folder.write(Self.scenario(straps: count, rate: rate), to: "scenario.yaml")
        let output = try OutputFile(folder.file("sim.out"))
        simulator = try ChildProcess(
            Programs.path("gattherd-sim"),
            ["run", "--truth", truthPath, scenario],
            output: .descriptor(output.descriptor)
        )
        try await eventually { !output.lines.isEmpty }
        bus = String(output.lines[0])
        let database = folder.file("history.db")
        self.database = SQLiteShell(database)
        let devices = (1...count).map { "  - {name: strap-\($0), address: \"\(Self.address($0))\"}" }
        settings = try folder.write(
            """
            gateway: test
            bluetooth: {bus: "\(bus)"}
            history: {path: \(database)}
            mqtt: {url: "mqtt://127.0.0.1:\(broker.port)"}
            devices:
            \(devices.joined(separator: "\n"))
            """,
            to: "gattherd.yaml"
        )
    }

    deinit {
        simulator.signal(SIGTERM)
    }

    static func address(_ number: Int) -> String {
        "C0:FF:EE:00:00:" + String(format: "%02X", number)
    }

    private static func scenario(straps count: Int, rate: Int) -> String {
        """
        peripherals:
          - {name: strap, count: \(count), kind: heart-rate, address: "\(address(1))", rate: \(rate), energy: true, rr: 2}
        """
    }

    func startDaemon() throws -> ChildProcess {
        try ChildProcess(
            Programs.path("gattherd"),
            ["run", "--config", settings],
            errors: .descriptor(errors.descriptor)
        )
    }

    /// Gives an order to the simulator.
    func order(_ words: String...) async throws {
        let (code, _) = try await Programs.run(Programs.path("gattherd-sim"), ["ctl", "--bus", bus] + words)
        guard code == 0 else { throw OrderRefused(words: words) }
    }

    struct OrderRefused: Error {
        let words: [String]
    }

    /// Waits until all straps are ready, each of them at least `times` times.
    func waitUntilReady(straps count: Int, times: Int = 1) async throws {
        let sql = """
            SELECT count(*) FROM (SELECT device FROM events WHERE kind = 'link'
            AND json_extract(detail, '$.to') = 'ready' GROUP BY device HAVING count(*) >= \(times))
            """
        try await eventually { (try? await database.value(sql)) == "\(count)" }
    }

    /// Ends the sending.
    func silence(straps count: Int) async throws {
        for number in 1...count { try await order("rate", "strap-\(number)", "0") }
    }

    /// Waits until the broker has acknowledged what is committed.
    func waitUntilDelivered() async throws {
        let sql = "SELECT (SELECT max(seq) FROM history) = (SELECT value FROM state WHERE key = 'cursor')"
        try await eventually { (try? await database.value(sql)) == "1" }
    }

    /// What the straps sent while somebody listened, by device, in order.
    func truth() throws -> [String: [Measurement]] {
        var truth: [String: [Measurement]] = [:]
        for line in try String(contentsOfFile: truthPath, encoding: .utf8).split(separator: "\n") {
            let entry = try JSONDecoder().decode(TruthEntry.self, from: Data(line.utf8))
            guard entry.event == "notification", entry.char == "2a37", entry.delivered == true, let hex = entry.hex,
                let number = entry.dev.flatMap({ Int($0.suffix(2), radix: 16) })
            else { continue }
            truth["strap-\(number)", default: []].append(Measurement(hex: hex))
        }
        return truth
    }

    private struct TruthEntry: Decodable {
        let event: String
        let dev: String?
        let char: String?
        let hex: String?
        let delivered: Bool?
    }
}
