import Foundation
import TestKit
import Testing

/// `gattherd profile` on the command line, with the profiles of the package.
@Suite(.timeLimit(.minutes(2))) struct ProfileCommandTests {
    private func profile(_ words: String...) async throws -> (Int32, String) {
        try await Programs.run(Programs.path("gattherd"), ["profile"] + words)
    }

    @Test(arguments: [
        ("heart-rate", "2a37", "06 48", #"{"heart_rate":72,"sensor_contact":true}"#),
        ("heart-rate", "heart_rate", "16 48 00 03", #"{"heart_rate":72,"sensor_contact":true,"rr_interval":[0.75]}"#),
        ("heart-rate", "2a37", "10 3c 00 04 01 04", #"{"heart_rate":60,"rr_interval":[1.0,1.000977]}"#),
        ("heart-rate", "2A38", "01", #"{"body_sensor_location":"chest"}"#),
        ("battery", "2a19", "64", #"{"battery_level":100}"#),
        ("number-service", "number", "ff", #"{"number":255,"ratio":1.0}"#),
    ])
    func `a payload is decoded`(name: String, characteristic: String, hex: String, json: String) async throws {
        #expect(try await profile("decode", name, characteristic, hex, "--json") == (0, json + "\n"))
    }

    @Test(arguments: [
        ("ruuvitag", "ruuvi", "05 8000 FFFF FFFF 8000 8000 8000 FFFF 01 0002 FFFFFFFFFFFF", #""movement_counter":1,"#),
        ("ruuvitag", "0499", "05 8000 FFFF FFFF 8000 8000 8000 FFFF 01 0002 FFFFFFFFFFFF", #""movement_counter":1,"#),
        ("xiaomi-atc", "181a", "332211 38C1A4 2E09 A911 9A0B 55 20 05", #"{"temperature":23.5,"humidity":45.21,"#),
        ("bthome", "fcd2", "40 0009 02CA09, 40 000A 02CA09", #"{"packet_id":10,"temperature":25.06}"#),
        ("bthome", "fcd2", "40 0009 02CA09, 40 0009 02CA09", "{}\n"),
    ])
    func `an advertisement is decoded`(name: String, place: String, hex: String, json: String) async throws {
        let (code, output) = try await profile("decode", name, place, hex, "--json")
        #expect(code == 0)
        #expect(output.contains(json))
    }

    @Test func `an encrypted advertisement is decoded and explained with its key`() async throws {
        let folder = try TemporaryFolder()
        let key = try folder.write("231d39c1d7cc1ab1aee224cd096db932\n", to: "door.key")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        let hex = "41 A47266C95F73 00112233 78237214"
        let sender = ["--address", "54:48:E6:8F:80:A5", "--key", key]
        let words = ["profile", "decode", "bthome", "bthome", hex]
        let gattherd = Programs.path("gattherd")
        let decoded = try await Programs.run(gattherd, words + ["--json"] + sender)
        #expect(decoded == (0, #"{"temperature":25.06,"humidity":50.55}"# + "\n"))
        let (code, explained) = try await Programs.run(gattherd, words + ["--explain"] + sender)
        #expect(code == 0)
        #expect(explained.contains(/\n2-3 +CA 09 +temperature +i16 +2506 +25.06 °C +present: id == 0x02/))
        #expect(explained.contains(/\n7-10 +00 11 22 33 +counter +envelope/))
        #expect(explained.hasSuffix("No byte is left over.\n"))
        #expect(try await Programs.run(gattherd, words + ["--key", key]) == (64, ""))
        #expect(try await Programs.run(gattherd, words) == (65, ""))
        let other = ["profile", "decode", "heart-rate", "2a37", "00 48"] + sender
        #expect(try await Programs.run(gattherd, other) == (64, ""))
    }

    @Test func `a frame of another format is skipped`() async throws {
        let folder = try TemporaryFolder()
        let words = ["profile", "decode", "ruuvitag", "ruuvi", "03 12"]
        let result = try await Programs.run(Programs.path("gattherd"), words, errors: folder.file("errors"))
        #expect(result == (65, ""))
        let explanation = try String(contentsOfFile: folder.file("errors"), encoding: .utf8)
        #expect(explanation == "skipped: a frame of ruuvi begins with 05\n")
    }

    @Test func `a profile begins with an advertisement as programs write it, but not with a connection`() async throws {
        let folder = try TemporaryFolder()
        let new = ["profile", "new", "porch", "--output", "-", "--from-advertisement"]
        let bytes = "0x02, 0x01, 0x06, 0x05, 0xFF, 0xFF, 0xFF, 0xC4, 0x09"
        let (code, text) = try await Programs.run(Programs.path("gattherd"), new + [bytes])
        #expect(code == 0)
        #expect(text.contains(#"{hex: "C4 09""#), "\(text)")
        let header = #"{"capture":1,"address":"C0:FF:EE:00:00:01","name":"Strap","services":[]}"#
        let path = try folder.write(header + "\n", to: "strap.jsonl")
        let errors = folder.file("errors")
        #expect(try await Programs.run(Programs.path("gattherd"), new + [path], errors: errors) == (65, ""))
        let message = "gattherd: \(path) is of a connection; capture with --advertisements, or use --from-device\n"
        #expect(try String(contentsOfFile: errors, encoding: .utf8) == message)
    }

    @Test(arguments: ["", "00", "01 48"])
    func `a payload that does not decode ends with exit code 65`(hex: String) async throws {
        #expect(try await profile("decode", "heart-rate", "2a37", hex) == (65, ""))
    }

    @Test(arguments: [
        (["decode", "heart-rate", "2a37", "zz"], 64), (["decode", "hart-rate", "2a37", "00"], 65),
        (["decode", "heart-rate", "2aff", "00"], 65), (["show", "nothing"], 65), (["test", "/nowhere.yaml"], 66),
    ])
    func `a missing profile or device is an exit code`(words: [String], code: Int) async throws {
        #expect(try await Programs.run(Programs.path("gattherd"), ["profile"] + words) == (Int32(code), ""))
    }

    @Test func `all profiles are listed and can be shown`() async throws {
        let (code, list) = try await profile("list")
        #expect(code == 0)
        #expect(list.contains(/service data 181a +climate climate_custom +/))
        for name in ["heart-rate", "number-service", "battery", "environmental-sensing"] {
            #expect(list.contains("\n\(name) "))
            #expect(try await profile("show", name).0 == 0)
        }
    }

    @Test(arguments: [("100", 0, "1 passed, 0 failed\n"), ("99", 65, "0 passed, 1 failed\n")])
    func `a profile's own tests are run`(expected: String, code: Int32, output: String) async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(
            """
            contract: 1
            profile: mine
            title: Mine
            services: [180f]
            characteristics:
              - uuid: 2a19
                stream: battery
                subscribe: notify
                fields: [{metric: battery_level, type: u8, unit: "%"}]
                tests: [{hex: "64", expect: {battery_level: \(expected)}}]
            """,
            to: "mine.yaml"
        )
        #expect(try await profile("test", path) == (code, output))
    }

    private func example(
        _ folder: TemporaryFolder,
        replacing old: String = "",
        by new: String = ""
    ) async throws -> String {
        let file = Checkout.root.appending(path: "Plugins/Examples/soil-probe.c")
        var source = try String(contentsOf: file, encoding: .utf8)
        if !old.isEmpty { source.replace(old, with: new) }
        return try await SharedLibrary.build(source, to: "soil-probe.so", in: folder)
    }

    @Test(arguments: [
        ("", "", 0, "2 passed, 0 failed\n", ""),
        (
            "moisture: 45}", "moisture: 46}", 65, "1 passed, 1 failed\n",
            "test 1 of stream 'soil': moisture: expected [46]"
        ),
        (".test_count = 2", ".test_count = 0", 65, "0 passed, 0 failed\n", "contains no test; nothing was tested"),
    ])
    func `a native profile's own tests are run`(
        old: String,
        new: String,
        code: Int32,
        output: String,
        explanation: String
    ) async throws {
        let folder = try TemporaryFolder()
        let path = try await example(folder, replacing: old, by: new)
        let errors = folder.file("errors")
        let result = try await Programs.run(Programs.path("gattherd"), ["profile", "test", path], errors: errors)
        #expect(result == (code, output))
        let complaints = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(explanation.isEmpty ? complaints.isEmpty : complaints.contains(explanation), "\(complaints)")
    }

    @Test func `a folder with tests in some of its profiles passes and names the others`() async throws {
        let folder = try TemporaryFolder()
        _ = try await example(folder)
        let other =
            "contract: 1\nprofile: other\nservices: [180f]\ncharacteristics:\n  - {uuid: 2a19, stream: battery, "
            + "subscribe: notify, fields: [{metric: level, type: u8}]}\n"
        let path = try folder.write(other, to: "other.yaml")
        let errors = folder.file("errors")
        let words = ["profile", "test", folder.path]
        #expect(try await Programs.run(Programs.path("gattherd"), words, errors: errors) == (0, "2 passed, 0 failed\n"))
        #expect(try String(contentsOfFile: errors, encoding: .utf8) == "\(path): other has no tests\n")
        #expect(try await profile("test", path) == (65, "0 passed, 0 failed\n"))
    }

    @Test func `a file's payloads are put together to messages`() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(
            """
            contract: 1
            profile: split
            services: [180f]
            characteristics:
              - uuid: 2a19
                stream: level
                subscribe: notify
                message: {begins: A5, length: {at: 1, type: u8, add: 2}}
                fields: [{skip: 2}, {metric: level, type: u8}]
            """,
            to: "split.yaml"
        )
        let whole = try folder.write("A5 01\n07 A5\n# a comment\n01 08 A5 01 09\n", to: "whole.txt")
        let words = ["decode", "split", "2a19", "--path", path, "--json", "--file"]
        let decoded = try await Programs.run(Programs.path("gattherd"), ["profile"] + words + [whole])
        #expect(decoded == (0, "{\"level\":7}\n{\"level\":8}\n{\"level\":9}\n"))
        let cut = try folder.write("A5 01 07\nA5 01\n", to: "cut.txt")
        let rejected = try await Programs.run(Programs.path("gattherd"), ["profile"] + words + [cut])
        #expect(rejected.0 == 65)
        #expect(rejected.1 == "{\"level\":7}\n{\"rejected\":\"incomplete message: 2 of 3 bytes\"}\n")
    }

    @Test func `a native profile's decoding is explained by trials`() async throws {
        let folder = try TemporaryFolder()
        let path = try await example(folder)
        let (code, text) = try await profile("decode", "soil-probe", "soil", "C4 09 2D 00", "--path", path, "--explain")
        #expect(code == 0)
        #expect(text.hasPrefix("\(path), soil (fff1): 4 bytes\n"))
        #expect(text.contains("\n0-1  C4 09  temperature  25.0 °C\n"))
        #expect(text.contains("\nBytes without effect: 3.\n"))
        let rejected = try await profile("decode", "soil-probe", "soil", "C4 09", "--path", path, "--explain")
        #expect(rejected.0 == 65)
        #expect(rejected.1.contains("decide which values there are: none.\n"))
    }

    @Test func `a profile with mistakes is refused with places and suggestions`() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.wrong, to: "wrong.yaml")
        let (code, output) = try await Programs.run(
            Programs.path("gattherd"),
            ["profile", "check", path],
            errors: folder.file("errors")
        )
        let complaints = try String(contentsOfFile: folder.file("errors"), encoding: .utf8).split(separator: "\n")
        #expect((code, output) == (65, ""))
        #expect(complaints.count == 2)
        #expect(complaints.first == "\(path):4:32: error: a characteristic has no key 'strem'; did you mean 'stream'?")
        #expect(complaints.last?.contains("'i16el' is invalid; expected a type: u8 or i8") == true)
        #expect(complaints.last?.hasSuffix("did you mean 'i16le'?") == true)
        let (_, json) = try await profile("check", path, "--json")
        #expect(json.contains(#""line":4,"column":32,"severity":"error","kind":"profile""#))
    }

    @Test(arguments: [["show", "wrong"], ["docs", "wrong"], ["decode", "wrong", "2a19", "64"]])
    func `a command about a refused profile reports the reason`(words: [String]) async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.wrong, to: "wrong.yaml")
        let errors = folder.file("errors")
        let words = ["profile"] + words + ["--path", path]
        #expect(try await Programs.run(Programs.path("gattherd"), words, errors: errors) == (65, ""))
        let complaints = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(complaints.contains("\(path):4:32: a characteristic has no key 'strem'"))
        #expect(complaints.contains("there is no profile 'wrong'"))
    }

    @Test(arguments: ["check", "test"])
    func `a folder without a profile is an error`(command: String) async throws {
        let folder = try TemporaryFolder()
        let errors = folder.file("errors.txt")
        let words = ["profile", command, folder.path]
        #expect(try await Programs.run(Programs.path("gattherd"), words, errors: errors).0 == 65)
        #expect(try String(contentsOfFile: errors, encoding: .utf8) == "gattherd: \(folder.path) contains no profile\n")
    }

    private static let wrong = """
        contract: 1
        profile: wrong
        services: [180f]
        characteristics: [{uuid: 2a19, strem: b, stream: b, read: true, fields: [{metric: m, type: i16el}]}]
        """

    @Test func `a valid profile is reported as good, and a missing path as an error`() async throws {
        let path = SharedLibrary.root + "/Plugins/Standard/heart-rate.yaml"
        #expect(try await profile("check", path) == (0, "\(path): good: heart-rate, 3 streams, 1 control, 16 tests\n"))
        #expect(try await profile("check", "/nowhere.yaml") == (66, ""))
        let tag = SharedLibrary.root + "/Plugins/Standard/ruuvitag.yaml"
        #expect(try await profile("check", tag) == (0, "\(tag): good: ruuvitag, 5 streams, 20 tests\n"))
    }

    @Test(arguments: [("16 48 00 03", 0, "No byte is left over."), ("16 48 00", 65, "Not decoded: 00, from 2.")])
    func `a payload is explained byte by byte`(hex: String, code: Int32, rest: String) async throws {
        let path = SharedLibrary.root + "/Plugins/Standard/heart-rate.yaml"
        let (ended, output) = try await profile("decode", "heart-rate", "2a37", hex, "--explain", "--path", path)
        #expect(ended == code)
        #expect(output.hasSuffix(rest + "\n"))
        #expect(output.contains("72 bpm  present: !f.0"))
    }

    @Test func `the example of the documentation is explained by the installed profiles`() async throws {
        let readme = try String(contentsOfFile: SharedLibrary.root + "/docs/profiles.md", encoding: .utf8)
        let example = /gattherd profile decode ([^ ]+) ([^ ]+) "([^"]+)" --explain\n/
        let words = try #require(readme.firstMatch(of: example)?.output)
        let (code, output) = try await profile("decode", "\(words.1)", "\(words.2)", "\(words.3)", "--explain")
        #expect(code == 0)
        #expect(output.hasSuffix("No byte is left over.\n"))
    }

    @Test func `the text and the page of a profile have its tasks, topics and queries`() async throws {
        let shown = try await profile("show", "glucose").1
        let page = try await profile("docs", "glucose").1
        for text in [shown, page] {
            #expect(text.contains("stored records of glucose by requests to 2a52 Record Access Control Point"))
            #expect(text.contains("gattherd/GATEWAY/DEVICE/glucose"))
            #expect(text.contains("AND stream = 'glucose' ORDER BY ts DESC LIMIT"))
        }
        #expect(page.hasPrefix("# glucose\n"))
        #expect(page.contains("\n## At each connect\n\n| step | action | required |\n| --- | --- | --- |\n"))
    }

    @Test func `the text and the page of a profile of advertisements have its metrics`() async throws {
        let shown = try await profile("show", "bthome").1
        let page = try await profile("docs", "bthome").1
        for text in [shown, page] {
            #expect(text.contains("advertise service data fcd2; they are never connected."))
            #expect(text.contains("gattherd/GATEWAY/DEVICE/bthome"))
            #expect(text.contains("AND profile = 'bthome' AND stream = 'bthome' ORDER BY ts DESC LIMIT"))
            #expect(!text.contains("window_2"))
        }
        #expect(page.contains("| bthome | 40 0009 02CA09, 40 0009 02CA09 | nothing new |"))
        #expect(
            page.contains("78237214, from 54:48:E6:8F:80:A5 with a bind key | temperature 25.06 °C, humidity 50.55 % |")
        )
    }
}
