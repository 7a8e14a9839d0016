import Foundation
import GattherdProcess
import TestKit
import Testing

/// Commands on a device of the daemon: they use its link and leave no trace in history.
@Suite(.timeLimit(.minutes(3))) struct DaemonPeripheralTests {
    private static let scenario = """
        timing: quick
        peripherals:
          - name: probe
            kind: custom
            address: C0:FF:EE:00:00:09
            advertise: {name: Probe}
            battery: 77
            services:
              - uuid: 180d
                characteristics:
                  - {uuid: 2a37, properties: [notify], notify: ["16 48 00 03", "16 49 00 03", "16 4a 00 03"], rate: 50}
              - uuid: fff0
                characteristics:
                  - {uuid: fff2, properties: [write]}
        """

    private func rows(_ bench: PeripheralBench, _ condition: String) async throws -> Int {
        let sql = "SELECT count(DISTINCT seq) FROM history WHERE \(condition)"
        return try #require(Int(try await SQLiteShell(bench.folder.file("readings.db")).value(sql)))
    }

    @Test(arguments: ["", ", notify: socket", ", notify: signals"])
    func `commands share the daemon's link, and history has each notification once`(path: String) async throws {
        let bench = try await PeripheralBench(Self.scenario)
        try await bench.withDaemon(path) {
            for _ in 0..<10 {
                #expect(try await bench.run("read", "probe", "2a19") == (0, "4d  = battery_level 77 %\n"))
            }
            let watched = try await bench.run("watch", "probe", "2a37", "--count", "10")
            #expect(watched.0 == 0)
            #expect(watched.1.split(separator: "\n").count == 10)
            let table = try await bench.run("inspect", "probe").1
            #expect(table.contains("      = battery_level 77 %\n"), "\(table)")
            let capture = bench.folder.file("probe.jsonl")
            #expect(try await bench.run("capture", "probe", capture, "--count", "20").0 == 0)
            #expect(try bench.text("probe.jsonl").contains(#""characteristic":"2a37","source":"notify""#))
            #expect(try await bench.run("write", "probe", "fff2", "01 02").0 == 0)
            #expect(try await bench.count("write") == 1)
            #expect(try await bench.run("read", "probe", "dead").0 == 69)
        }
        #expect(try await bench.count("connect") == 1)
        #expect(try await rows(bench, "stream = 'heart_rate' AND source = 'read'") == 0)
        #expect(try await rows(bench, "stream = 'battery'") <= 1)
        let stored = try await rows(bench, "stream = 'heart_rate'")
        let sent = try bench.text("truth").split(separator: "\n").count { line in
            line.contains(#""char":"2a37""#) && line.contains(#""delivered":true"#)
        }
        #expect(stored > 0)
        #expect(stored <= sent)
    }

    @Test func `a command ends the daemon's pause, and the one link stays`() async throws {
        let bench = try await PeripheralBench(Self.scenario)
        try await bench.withDaemon {
            try await bench.order("refuse", "probe", "3")
            try await bench.order("drop", "probe")
            try await eventually { try await bench.run("status", "--json").1.contains(#""attempt":4"#) }
            #expect(try await bench.run("inspect", "probe").0 == 0)
            #expect(try await bench.run("status", "--json").1.contains(#""state":"ready""#))
            #expect(try await bench.count("connect") - bench.count("disconnect") == 1)
        }
    }

    @Test func `a command connects a device that a person holds, and disconnects it`() async throws {
        let bench = try await PeripheralBench(Self.scenario)
        try await bench.withDaemon {
            #expect(try await bench.run("disconnect", "probe").0 == 0)
            try await eventually { try await bench.count("disconnect") == 1 }
            #expect(try await bench.run("read", "probe", "2a19").0 == 0)
            #expect(try await bench.count("connect") == 2)
            #expect(try await bench.count("disconnect") == 2)
        }
    }

    @Test func `a watch ends when the daemon's link ends`() async throws {
        let bench = try await PeripheralBench(Self.scenario)
        try await bench.withDaemon {
            let path = bench.folder.file("probe.jsonl")
            async let captured = bench.run("capture", "probe", path)
            try await eventually { (try? bench.text("probe.jsonl.part"))?.contains("2a37\",\"source") == true }
            try await bench.order("drop", "probe")
            #expect(try await captured.0 == 69)
            #expect(try bench.text("err").contains("the link ended"))
        }
    }
}
