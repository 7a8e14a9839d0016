import Foundation
import GattherdProcess
import TestKit
import Testing

/// `gattherd profile new`, `capture` and `replay` on a simulated peripheral.
@Suite(.timeLimit(.minutes(3))) struct PeripheralCommandTests {
    private static let scenario = """
        timing: quick
        peripherals:
          - name: probe
            kind: custom
            address: C0:FF:EE:00:00:09
            advertise: {name: Probe}
            battery: 77
            services:
              - uuid: fff0
                characteristics:
                  - uuid: fff1
                    properties: [notify]
                    notify: ["01 00", "02 00", "03 00"]
                    rate: 50
                    descriptors: [{uuid: 2901, value: "53 6f 69 6c"}]
                  - {uuid: fff2, properties: [write]}
                  - {uuid: fff3, properties: [read], value: "68 65 6c 6c 6f"}
        """

    @Test func `a profile made from a device is valid, has tests and overwrites nothing`() async throws {
        let bench = try await PeripheralBench(Self.scenario)
        let path = bench.folder.file("soil.yaml")
        #expect(
            try await bench.run("profile", "new", "soil", "--from-device", "probe", "--listen", "1", "--output", path).0
                == 0
        )
        let text = try bench.text("soil.yaml")
        #expect(text.contains("# A profile of C0:FF:EE:00:00:09 (Probe)"))
        #expect(text.contains("stream: soil\n    subscribe: notify\n"))
        #expect(text.contains(#"{hex: "68 65 6C 6C 6F", expect: {c_fff3: "hello"}}"#))
        #expect(!text.contains("2a19"))
        #expect(try bench.text("err").contains("left out 2a19 Battery Level: the profile 'battery' decodes it"))
        let good = try await Programs.run(Programs.path("gattherd"), ["profile", "check", path])
        #expect(good == (0, "\(path): good: soil, 2 streams, 4 tests\n"))
        #expect(
            try await Programs.run(Programs.path("gattherd"), ["profile", "test", path]).1 == "4 passed, 0 failed\n"
        )
        #expect(try await bench.run("profile", "new", "soil", "--output", path).0 == 73)
    }

    @Test func `the commands scan, inspect, read, write and watch a peripheral`() async throws {
        let bench = try await PeripheralBench(Self.scenario)
        let heard = try await bench.run("scan", "--seconds", "2")
        #expect(heard.1.contains(/C0:FF:EE:00:00:09 +-[0-9]+ dBm +probe +Probe/), "\(heard.1)")
        let silent = try await bench.run("scan", "--seconds", "1", "--service", "1234", "--json")
        #expect(silent == (0, "[]\n"))
        let table = try await bench.run("inspect", "probe").1
        #expect(table.contains("  fff3  [read]\n      68656c6c6f \"hello\"\n"), "\(table)")
        #expect(table.contains("      = battery_level 77 %\n"))
        #expect(table.contains("2901 Characteristic User Description: 536f696c \"Soil\""))
        let object = try await bench.run("inspect", "probe", "--json").1
        #expect(object.contains(#"{"uuid":"fff3","properties":["read"],"hex":"68656c6c6f","descriptors":[]}"#))
        #expect(try await bench.run("read", "probe", "2a19") == (0, "4d  = battery_level 77 %\n"))
        #expect(try await bench.run("read", "probe", "180f/2a19", "--json").1.contains(#""battery_level":77"#))
        #expect(try await bench.run("write", "probe", "fff2", "01 02").0 == 0)
        #expect(try await bench.run("watch", "probe", "fff1", "--count", "2").1.split(separator: "\n").count == 2)
    }

    @Test(
        arguments: [
            (["read", "probe", "fff2"], 69, "fff2"), (["read", "probe", "dead"], 69, "has no characteristic"),
            (["read", "prob", "2a19"], 65, "did you mean 'probe'?"), (["read", "probe", "x"], 64, "is not a UUID"),
            (["write", "probe", "fff2", "0"], 64, "is not hexadecimal"),
            (["write", "probe", "fff3", "00"], 69, "fff3"),
            (["watch", "probe", "fff3"], 69, "fff3"), (["scan", "--service", "x"], 64, "is not a UUID"),
        ] as [([String], Int32, String)]
    )
    func `an impossible operation is reported with advice`(words: [String], code: Int32, message: String) async throws {
        let bench = try await PeripheralBench(Self.scenario)
        #expect(try await bench.run(words).0 == code)
        let errors = try bench.text("err")
        #expect(errors.contains(message), "\(errors)")
    }

    @Test func `reading a device that only advertises fails and points to its history`() async throws {
        let folder = try TemporaryFolder()
        let device = "{name: garden, address: C0:FF:EE:00:00:09, profiles: [ruuvitag]}"
        let words = ["read", "garden", "2a19", "--config", try folder.write("devices: [\(device)]\n", to: "g.yaml")]
        let result = try await Programs.run(Programs.path("gattherd"), words, errors: folder.file("err"))
        #expect(result == (65, ""))
        let errors = try String(contentsOfFile: folder.file("err"), encoding: .utf8)
        #expect(errors.hasSuffix(": gattherd history --device garden\n"), "\(errors)")
    }

    @Test func `the generated Swift package builds and loads`() async throws {
        let folder = try TemporaryFolder()
        let package = folder.file("probe-2")
        let words = ["profile", "new", "probe-2", "--swift", "--gattherd", SharedLibrary.root, "--output", package]
        #expect(try await Programs.run(Programs.path("gattherd"), words).0 == 0)
        let manifest = try String(contentsOfFile: package + "/Package.swift", encoding: .utf8)
        #expect(manifest.contains(".package(path: \"\(SharedLibrary.root)\")"))
        let sources = ["Export", "Probe2Profile"].map { "\(package)/Sources/Probe2/\($0).swift" }
        let library = try await SharedLibrary.buildSwift(sources, to: "libProbe2.so", in: folder)
        let decode = ["profile", "decode", "probe-2", "fff1", "2A 01", "--json", "--path", library]
        #expect(try await Programs.run(Programs.path("gattherd"), decode) == (0, #"{"c_fff1":298}"# + "\n"))
        let test = ["profile", "test", library]
        #expect(try await Programs.run(Programs.path("gattherd"), test) == (0, "2 passed, 0 failed\n"))
        #expect(try await Programs.run(Programs.path("gattherd"), words).0 == 73)
    }

    @Test func `a capture is replayed through the decoders and by the simulator`() async throws {
        let bench = try await PeripheralBench(Self.scenario)
        let path = bench.folder.file("probe.jsonl")
        #expect(try await bench.run("capture", "probe", path, "--count", "8").0 == 0)
        #expect(try bench.text("err").hasPrefix("recording; Ctrl-C ends it\n"))
        let lines = try bench.text("probe.jsonl").split(separator: "\n")
        #expect(lines.count == 9)
        #expect(
            lines.first?.hasPrefix(
                #"{"capture":1,"address":"C0:FF:EE:00:00:09","name":"Probe","services":[{"uuid":"fff0""#
            ) == true
        )
        #expect(try await bench.run("profile", "new", "soil", "--output", bench.folder.file("soil.yaml")).0 == 0)
        let decoded = try await Programs.run(
            Programs.path("gattherd"),
            ["replay", path, "--path", bench.folder.file("soil.yaml"), "--json"]
        )
        #expect(decoded.0 == 0)
        #expect(decoded.1.contains(#""profile":"soil","stream":"c_fff1","c_fff1":2}"#))
        #expect(decoded.1.contains(#""characteristic":"fff3","hex":"68656c6c6f"}"#))

        let again = try await PeripheralBench(
            "timing: quick\nperipherals: [{name: probe, replay: probe.jsonl}]\n",
            files: ["probe.jsonl": try bench.text("probe.jsonl")]
        )
        #expect(try await again.run("capture", "probe", again.folder.file("again.jsonl"), "--count", "8").0 == 0)
        #expect(try Self.payloads(again.text("again.jsonl")) == Self.payloads(bench.text("probe.jsonl")))
    }

    /// Returns the payloads of fff1.
    private static func payloads(_ text: String) -> Set<Substring> {
        Set(
            text.split(separator: "\n").filter { $0.contains(#""characteristic":"fff1""#) }.compactMap {
                $0.split(separator: "\"hex\":").last
            }
        )
    }

    @Test func `the link of another program is used and stays`() async throws {
        let bench = try await PeripheralBench(Self.scenario)
        let held = try OutputFile(bench.folder.file("held.jsonl"))
        let holder = try ChildProcess(
            Programs.path("gattherd"),
            ["capture", "probe", "-", "--config", bench.folder.file("gattherd.yaml")],
            output: .descriptor(held.descriptor)
        )
        try await eventually { held.lines.count > 5 }
        #expect(
            try await bench.run("profile", "new", "soil", "--from-device", "probe", "--listen", "1", "--output", "-").1
                .contains("soil")
        )
        let count = held.lines.count
        try await eventually { held.lines.count > count + 20 }
        holder.signal(SIGINT)
        #expect(await holder.wait() == .exited(0))
    }

    @Test func `a capture of a silent peripheral ends once it has read enough values`() async throws {
        let bench = try await PeripheralBench(
            """
            timing: quick
            peripherals:
              - name: probe
                kind: custom
                address: C0:FF:EE:00:00:09
                advertise: {name: Probe}
                services:
                  - uuid: fff0
                    characteristics: [{uuid: fff3, properties: [read], value: "68 65 6c 6c 6f"}]
            """
        )
        let path = bench.folder.file("probe.jsonl")
        #expect(try await bench.run("capture", "probe", path, "--count", "1").0 == 0)
        #expect(try bench.text("probe.jsonl").contains(#""characteristic":"fff3","source":"read""#))
    }

    @Test func `a capture replaces no file without its option`() async throws {
        let bench = try await PeripheralBench(Self.scenario)
        let path = try bench.folder.write("precious", to: "probe.jsonl")
        let refused = try await bench.run("capture", "probe", path, "--count", "1").0
        #expect(refused == 73)
        #expect(try bench.text("err").contains("already exists; choose another FILE, or add --replace"))
        #expect(try bench.text("probe.jsonl") == "precious")
        #expect(try await bench.run("capture", "probe", path, "--advertisements", "--count", "1").0 == 73)
        #expect(try await bench.run("capture", "probe", path, "--count", "1", "--replace").0 == 0)
        #expect(try bench.text("probe.jsonl").hasPrefix(#"{"capture":1,"#))
    }

    @Test func `a capture ends with its link and keeps the values`() async throws {
        let bench = try await PeripheralBench(Self.scenario)
        let path = bench.folder.file("probe.jsonl")
        async let captured = bench.run("capture", "C0:FF:EE:00:00:09", path)
        try await eventually { (try? bench.text("probe.jsonl.part"))?.contains("fff1\",\"source") == true }
        try await bench.order("drop", "probe")
        #expect(try await captured.0 == 69)
        #expect(try bench.text("probe.jsonl").contains("fff1\",\"source"))
        #expect(try bench.text("err").contains("the link ended"))
    }

    @Test(arguments: [
        (["capture", "prob", "x.jsonl"], 65, "there is no device 'prob'; did you mean 'probe'?"),
        (["capture", "all", "x.jsonl"], 64, "of 'all' only advertisements can be recorded; add --advertisements"),
        (["capture", "probe", "/nowhere/x.jsonl"], 73, "/nowhere/x.jsonl"),
        (["capture", "probe", "x.jsonl", "--count", "0"], 64, "--count is a number from 1"),
        (["profile", "new", "Two Words"], 64, "'Two Words' is not a name"),
        (["replay", "/nowhere"], 66, "/nowhere"),
        (["replay", "/"], 66, "gattherd: /: this is a folder; name a file"),
    ])
    func `an invalid command ends with an exit code`(words: [String], code: Int32, message: String) async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("devices: [{name: probe, address: C0:FF:EE:00:00:09}]\n", to: "g.yaml")
        let (ended, _) = try await Programs.run(
            Programs.path("gattherd"),
            words + ["--config", file],
            errors: folder.file("err")
        )
        #expect(ended == code)
        #expect(try String(contentsOfFile: folder.file("err"), encoding: .utf8).contains(message))
    }

    @Test(arguments: [
        (
            #"{"ts":"2026-11-21T03:20:05Z","service":"180d","characteristic":"2a37","source":"notify","hex":"16"}"#,
            ":1: error: the header line must come first"
        ),
        ("{", ":1: error: invalid JSON"),
    ])
    func `an invalid capture is reported with its line`(text: String, message: String) async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(text + "\n", to: "c.jsonl")
        let (code, _) = try await Programs.run(Programs.path("gattherd"), ["replay", path], errors: folder.file("err"))
        #expect(code == 65)
        #expect(try String(contentsOfFile: folder.file("err"), encoding: .utf8).contains(path + message))
    }

    @Test(arguments: [
        (Data([0xFF, 0xFE, 0x30, 0, 0x32, 0]), Int32(65), ":1: error: the file is in UTF-16; write it in UTF-8"),
        (Data([0xFE, 0xFF, 0, 0x30, 0, 0x0A]), 65, ":1: error: the file is in UTF-16; write it in UTF-8"),
        (Data(), 0, " has no values and no advertisements"),
        (Data("\u{FEFF}".utf8) + Data(#"{"capture":1,"advertisements":true}"#.utf8), 0, " has no values and no"),
    ])
    func `an empty recording and text of another encoding are reported`(
        contents: Data,
        code: Int32,
        message: String
    ) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("air")
        try contents.write(to: URL(fileURLWithPath: path))
        let ended = try await Programs.run(Programs.path("gattherd"), ["replay", path], errors: folder.file("err"))
        #expect(ended.0 == code)
        #expect(try String(contentsOfFile: folder.file("err"), encoding: .utf8).contains(path + message))
    }
}
