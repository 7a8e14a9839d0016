import Foundation
import GattherdProcess
import Glibc
import TestKit
import Testing

/// `gattherd simulate` with several gateways: real daemons on buses of their own.
@Suite(.timeLimit(.minutes(3))) struct SimulatedFleetTests {
    /// A strap that walks from west to east and back in 24 s, and a tag that both gateways hear.
    private static let scenario = """
        timing: quick
        air: {exponent: 2, sensitivity: -90, noise: 0}
        gateways: [{name: west, at: [0, 0]}, {name: east, at: [50, 0]}]
        peripherals:
          - name: walker
            kind: heart-rate
            address: C0:FF:EE:00:00:01
            rate: 5
            path: {0s: [0, 1], 10s: [0, 1], 12s: [50, 1], 22s: [50, 1], 24s: [0, 1]}
          - name: tag
            kind: beacon
            address: C0:FF:EE:00:00:30
            at: [25, 0]
            advertise:
              turn: 2s
              manufacturer_data:
                0x0499:
                  - 0510a44678c3d40004fffc040cac364200c8c0ffee000030
                  - 0510ae463cc3d70004fffc040cac364200c9c0ffee000030
          - {name: dial, kind: number-service, address: C0:FF:EE:00:00:10, at: [1, 0], rate: 2}

        """

    @Test func `a walking strap is handed over from gateway to gateway, and nothing stays behind`() async throws {
        let folder = try TemporaryFolder()
        let work = folder.file("tmp")
        try FileManager.default.createDirectory(atPath: work, withIntermediateDirectories: true)
        let output = try OutputFile(folder.file("out"))
        let child = try ChildProcess(
            Programs.path("gattherd"),
            ["simulate", try folder.write(Self.scenario, to: "site.yaml")],
            environment: ["TMPDIR=" + work],
            output: .descriptor(output.descriptor)
        )
        let places = ["walker is ready at west", "walker is ready at east", "dial is ready at west"]
        try await eventually {
            places.allSatisfy { output.lines.contains(Substring($0)) } || child.exitStatus != nil
        }
        #expect(!output.text.contains("dial is ready at east"))
        let site = try #require(output.text.firstMatch(of: /files of each gateway are in ([^ ;]+);/)?.1)
        let (west, east) = (SQLiteShell("\(site)/west/history.db"), SQLiteShell("\(site)/east/history.db"))
        for shell in [west, east] {
            try await eventually {
                try await shell.value(
                    "SELECT count(DISTINCT device) FROM history WHERE device IN ('walker', 'tag')"
                ) == "2"
            }
        }
        #expect(try await east.value("SELECT count(*) FROM history WHERE device = 'dial'") == "0")
        try checkDashboards(output.text)
        child.signal(SIGINT)
        #expect(await child.wait() == .exited(0))
        #expect(try FileManager.default.contentsOfDirectory(atPath: work).isEmpty)
        #expect(try survivors(folder.path).isEmpty)
    }

    @Test(.enabled(if: PostgresServer.programs != nil, "PostgreSQL is missing; run: make test-servers"))
    func `one PostgreSQL has the readings of all gateways, each advertisement once, and is removed at the end`()
        async throws
    {
        let folder = try TemporaryFolder()
        let work = folder.file("tmp")
        try FileManager.default.createDirectory(atPath: work, withIntermediateDirectories: true)
        // The database has another user if this is root.
        for path in [folder.path, work] { try #require(unsafe chmod(path, 0o711) == 0) }
        let output = try OutputFile(folder.file("out"))
        let programs = try #require(PostgresServer.programs)
        let scenario = try folder.write(Self.scenario, to: "site.yaml")
        let child = try ChildProcess(
            Programs.path("gattherd"),
            ["simulate", "--postgres", programs, scenario],
            environment: ["TMPDIR=" + work],
            output: .descriptor(output.descriptor)
        )
        try await eventually { output.text.contains("Ctrl-C stops everything") || child.exitStatus != nil }
        let url = String(try #require(output.text.firstMatch(of: /fleet status '([^']+)'/)?.1))
        func rows(_ sql: String) async throws -> [Substring] {
            try await Programs.run("\(programs)/psql", ["-X", "-A", "-t", "-c", sql, url]).1.split(separator: "\n")
        }
        try await eventually {
            let sql = "SELECT DISTINCT gateway FROM gattherd.receptions WHERE device = 'tag' AND rssi < 0 ORDER BY 1"
            let merged = "SELECT count(*) > 3 FROM gattherd.receptions WHERE gateway <> reading_gateway"
            let (gateways, isMerged) = (try await rows(sql), try await rows(merged))
            return gateways == ["east", "west"] && isMerged == ["t"] || child.exitStatus != nil
        }
        let addressed = "SELECT count(*) FROM gattherd.devices WHERE address LIKE 'C0:%' AND device = 'tag'"
        try await eventually { try await rows(addressed) == ["2"] || child.exitStatus != nil }
        child.signal(SIGINT)
        #expect(await child.wait() == .exited(0))
        #expect(try FileManager.default.contentsOfDirectory(atPath: work).isEmpty)
        #expect(try survivors(folder.path).isEmpty)
    }

    private func checkDashboards(_ text: String) throws {
        let lines = text.matches(of: /\n  (west|east)  http:\/\/127\.0\.0\.1:([0-9]+)\//)
        #expect(Set(lines.map { $0.1 }) == ["west", "east"])
        for line in lines {
            let client = try RawClient(try #require(UInt16(line.2)))
            #expect(client.get("/api/v1/status").body.contains("\"gateway\":\"\(line.1)\""))
        }
    }

    /// Returns the running processes of the simulation: all have the test folder in their environment.
    private func survivors(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { UInt($0) != nil }.filter { pid in
            let variables = FileManager.default.contents(atPath: "/proc/\(pid)/environ") ?? Data()
            return String(decoding: variables, as: UTF8.self).contains(folder)
        }
    }
}
