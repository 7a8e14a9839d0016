import BlueZKit
import Foundation
import GattherdProcess
import TestKit

/// Several daemons around simulated peripherals in one air, with a broker and a central database.
final class FleetSite: Sendable {
    /// One daemon with its files.
    struct Member: Sendable {
        let name: String
        let daemon: ChildProcess
        let history: SQLiteShell
        let configuration: String
        let log: OutputFile
    }

    struct CommandFailed: Error {
        let words: [String]
        let code: Int32
    }

    static var isAvailable: Bool { PostgresServer.programs != nil }

    let server: PostgresServer
    let broker: Broker
    let members: [Member]
    let truthPath: String
    private let simulator: ChildProcess
    private let folder: TemporaryFolder

    /// Starts everything.
    ///
    /// - Parameters:
    ///   - scenario: A scenario of several gateways.
    ///   - gateways: Their names, in the order of the scenario.
    ///   - devices: The section `devices` of all gateways.
    /// - Throws: An error if a part cannot be started.
    init(_ scenario: String, gateways: [String], devices: String) async throws {
        folder = try TemporaryFolder()
        server = try await PostgresServer()
        try await server.start()
        try await server.rows("CREATE DATABASE fleet")
        broker = try Broker()
        try await broker.start()
        truthPath = folder.file("truth")
        let (simulator, buses) = try await Self.startSimulator(scenario, gateways.count, in: folder, truthPath)
        self.simulator = simulator
        let admin = "postgresql://postgres@127.0.0.1:\(server.port)/fleet"
        try await Self.gattherd("fleet", "init", admin)
        var members: [Member] = []
        for (name, bus) in zip(gateways, buses) {
            let password = folder.file("\(name).password")
            try await Self.gattherd("fleet", "add", admin, name, "--output", password)
            let text = """
                gateway: \(name)
                bluetooth: {bus: '\(bus)'}
                history: {path: \(folder.file("\(name).db"))}
                mqtt: {url: "mqtt://127.0.0.1:\(broker.port)"}
                postgres: {url: "postgresql://127.0.0.1:\(server.port)/fleet", password_file: \(password)}
                fleet: {leases: true}
                devices:
                \(devices)
                """
            members.append(try Self.startDaemon(name, text, in: folder))
        }
        self.members = members
    }

    deinit {
        for member in members { member.daemon.signal(SIGKILL) }
        simulator.signal(SIGKILL)
    }

    private static func startSimulator(
        _ scenario: String,
        _ count: Int,
        in folder: TemporaryFolder,
        _ truth: String
    ) async throws -> (ChildProcess, [String]) {
        let output = try OutputFile(folder.file("sim.out"))
        let simulator = try ChildProcess(
            Programs.path("gattherd-sim"),
            ["run", "--bus", "private", "--truth", truth, try folder.write(scenario, to: "site.yaml")],
            output: .descriptor(output.descriptor)
        )
        try await eventually { output.lines.count >= count || simulator.exitStatus != nil }
        return (simulator, output.lines.map { String($0.split(separator: " ").last ?? "") })
    }

    private static func startDaemon(_ name: String, _ text: String, in folder: TemporaryFolder) throws -> Member {
        let configuration = try folder.write(text, to: "\(name).yaml")
        let log = try OutputFile(folder.file("\(name).log"))
        let daemon = try ChildProcess(
            Programs.path("gattherd"),
            ["run", "--config", configuration],
            errors: .descriptor(log.descriptor)
        )
        let history = SQLiteShell(folder.file("\(name).db"))
        return Member(name: name, daemon: daemon, history: history, configuration: configuration, log: log)
    }

    /// Runs a command; a failure is an error.
    @discardableResult
    static func gattherd(_ words: String...) async throws -> String {
        let (code, text) = try await Programs.run(Programs.path("gattherd"), words)
        guard code == 0 else { throw CommandFailed(words: words, code: code) }
        return text
    }

    var adminURL: String { "postgresql://postgres@127.0.0.1:\(server.port)/fleet" }

    func value(_ sql: String) async throws -> String { try await server.value(sql, database: "fleet") }

    func rows(_ sql: String) async throws -> [[String]] { try await server.rows(sql, database: "fleet") }

    /// Returns the rows of a query of the histories of all gateways, with the gateway in front.
    func histories(_ sql: String) async throws -> [[String]] {
        var all: [[String]] = []
        for member in members { all += try await member.history.rows(sql).map { [member.name] + $0 } }
        return all
    }

    /// Returns the number of a device's links that became ready, by gateway; a history may not be there yet.
    func readyLinks(of device: String) async -> [String: Int] {
        let sql =
            "SELECT count(*) FROM events WHERE device = '\(device)' AND kind = 'link' "
            + "AND json_extract(detail, '$.to') = 'ready'"
        var counts: [String: Int] = [:]
        for member in members { counts[member.name] = (try? await member.history.value(sql)).flatMap { Int($0) } }
        return counts
    }

    /// Ends the daemons, and waits for them.
    func stop() async {
        for member in members { member.daemon.signal(SIGTERM) }
        for member in members { _ = await member.daemon.wait() }
    }

    /// Waits until a gateway has the lease of a device.
    func waitForOwner(of device: String, _ owner: String? = nil) async throws -> String {
        let sql = "SELECT owner FROM gattherd.leases WHERE device = '\(device)' AND state = 'owned'"
        try await eventually {
            let found = try await self.rows(sql).first?.first
            return found != nil && (owner == nil || found == owner)
        }
        return try await value(sql)
    }
}
