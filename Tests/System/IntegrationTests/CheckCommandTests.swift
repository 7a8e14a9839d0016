import Foundation
import TestKit
import Testing

/// `gattherd check` on the command line.
@Suite(.timeLimit(.minutes(2))) struct CheckCommandTests {
    private struct Outcome {
        let code: Int32
        let output: String
        /// Standard error without the folder's path.
        let complaints: String
    }

    private func check(_ text: String, _ options: String..., with files: [String: String] = [:]) async throws -> Outcome
    {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.file("p"), withIntermediateDirectories: true)
        if files["gattherd.d"] == nil {
            let path = folder.file("gattherd.d")
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        for (name, text) in files { try folder.write(text, to: name) }
        let file = try folder.write(text, to: "g.yaml")
        let errors = folder.file("errors")
        let (code, output) = try await Programs.run(
            Programs.path("gattherd"),
            ["check", file] + options,
            errors: errors
        )
        let complaints = try String(contentsOfFile: errors, encoding: .utf8)
        let strip = { (text: String) in text.replacingOccurrences(of: folder.path + "/", with: "") }
        return Outcome(code: code, output: strip(output), complaints: strip(complaints))
    }

    private static let beacon = """
        contract: 1
        profile: beacon
        advertisement: [{service_data: fcd2, envelope: bthome, stream: x, fields: [{metric: x, type: u8}]}]
        """

    private static let probe =
        "contract: 1\nprofile: probe\nservices: [fff0]\ncontrols: [{name: a, uuid: fff1, type: u8}]"

    @Test(
        arguments: [
            ("profiles: [beacon], silence: 1h", nil), ("profiles: [probe]", nil),
            ("profiles: [beacon, probe]", "'beacon' is for devices that are never connected; name profiles of one"),
            ("profiles: [probe], silence: 1h", nil), ("profiles: [probe], silence: never", nil),
            ("profiles: [probe], silence: {ab: 1h}", "no profile of the device has a stream 'ab'"),
            ("profiles: [beacon], silence: never", "'silence': a device that only advertises has no streams"),
            ("bind_key_file: key", "'bind_key_file' is for devices with a profile of advertisements"),
            ("profiles: [beacon], bind_key_file: none", "no bind key can be read from"),
            ("profiles: [beacon], bind_key_file: short", "has no bind key; write the bind key, 32 or 24"),
            ("profiles: [beacon], bind_key_file: open", "every user of this host can read"),
            ("profiles: [beacon], bind_key_file: key", nil),
            ("profiles: [beacon], publish: {streams: {x: {deadband: {rssi: 5}}}}", nil),
            ("profiles: [beacon], publish: {deadband: {rsi: 5}}", "has a metric 'rsi'; did you mean 'rssi'?"),
        ] as [(String, String?)]
    )
    func `keys of sensors and of connected devices exclude each other`(keys: String, error: String?) async throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.file("p"), withIntermediateDirectories: true)
        let files = [("p/beacon.yaml", Self.beacon), ("p/probe.yaml", Self.probe), ("short", "0123")]
        let key = "231d39c1d7cc1ab1aee224cd096db932\n"
        for (name, text) in files + [("key", key), ("open", key)] {
            let mode = name == "open" || name.hasPrefix("p/") ? 0o644 : 0o600
            try FileManager.default.setAttributes(
                [.posixPermissions: mode],
                ofItemAtPath: try folder.write(text, to: name)
            )
        }
        let device = "{name: a, address: C0:FF:EE:00:00:01, \(keys)}"
        let file = try folder.write("profiles: {paths: [p]}\ndevices: [\(device)]\n", to: "g.yaml")
        let errors = folder.file("errors")
        let (code, _) = try await Programs.run(Programs.path("gattherd"), ["check", file], errors: errors)
        let complaints = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(code == (error == nil ? 0 : 78), "\(complaints)")
        #expect(error.map { complaints.contains($0) } ?? complaints.isEmpty, "\(complaints)")
        #expect(!complaints.contains("231d"))
    }

    @Test func `an alert about a metric that no profile has gets a warning`() async throws {
        let text = """
            profiles: {paths: [p]}
            alerts:
              - {name: a, metric: x, above: 1}
              - {name: b, metric: xx, above: 1}
              - {name: c, metric: rssi, below: -90}
            """
        let outcome = try await check(text, with: ["p/beacon.yaml": Self.beacon])
        let words =
            "g.yaml:4:23: warning: no profile has the metric 'xx'; only a device that describes its values itself "
            + "could raise the alert; did you mean 'x'?"
        #expect(outcome.code == 0)
        #expect(outcome.complaints.split(separator: "\n").first.map(String.init) == words)
        #expect(outcome.complaints.split(separator: "\n").count == 3)
    }

    @Test(arguments: [("profiles: {paths: [p]}", Int32(0)), ("gatway: x", 78)])
    func `a file with another suffix than yaml gets a warning`(text: String, code: Int32) async throws {
        let outcome = try await check(text, with: ["gattherd.d/more.yml": "zzz: 1\n"])
        let words = "gattherd.d/more.yml: warning: this file is not read: its name must end in .yaml; rename it"
        #expect(outcome.code == code)
        #expect(outcome.complaints.split(separator: "\n").first.map(String.init) == words)
    }

    @Test func `a valid file is reported as good, with exit code 0`() async throws {
        let outcome = try await check("devices: [{name: a, address: C0:FF:EE:00:00:01}]\nprofiles: {paths: [p]}\n")
        #expect(outcome.code == 0)
        #expect(outcome.output == "g.yaml: good: 1 device, 0 profiles\n")
        #expect(outcome.complaints.isEmpty)
    }

    @Test(arguments: [
        ("gatway: x", "g.yaml:1:1: error: unknown key 'gatway' in the configuration; did you mean 'gateway'?"),
        (
            "bluetooth:\n  connect_timeout: 5 parsecs",
            """
            g.yaml:2:20: error: '5 parsecs' is not a duration from 1s to 10m; write a number and its unit, \
            for example 30s
            """
        ),
        (
            "devices: [{name: a, address: C0:FF}]",
            "g.yaml:1:30: error: 'C0:FF' is not a Bluetooth address; write an address such as C0:FF:EE:00:00:01"
        ),
        (
            "devices:\n- {name: a, address: C0:FF:EE:00:00:01}\n- {name: a, address: C0:FF:EE:00:00:02}",
            "g.yaml:3:10: error: the name 'a' is used at g.yaml:2:10 already; give each its own"
        ),
        (
            "profiles:\n  paths: [nowhere]",
            "g.yaml:2:11: error: there is no folder or file 'nowhere'; create it or correct the path"
        ),
        (
            "profiles: {paths: [p]}\ndevices: [{name: a, address: C0:FF:EE:00:00:01, profiles: [x]}]",
            """
            g.yaml:2:60: error: no profile is named 'x': there are no profiles; install them, \
            or correct profiles.paths
            """
        ),
    ])
    func `a mistake is one line with place and advice, and exit code 78`(
        text: String,
        line: String
    ) async throws {
        let outcome = try await check(text)
        #expect(outcome.code == 78)
        #expect(outcome.output.isEmpty)
        #expect(outcome.complaints.split(separator: "\n").first.map(String.init) == line)
        #expect(outcome.complaints.split(separator: "\n").count == 3)
    }

    @Test func `unknown streams, metrics and controls are reported with suggestions`()
        async throws
    {
        let profile = """
            contract: 1
            profile: room
            title: Room
            services: [181a]
            characteristics:
              - {uuid: 2a6e, stream: air, subscribe: notify, fields: [{metric: temperature, type: i16le}]}
            """
        let text = """
            profiles: {paths: [p]}
            devices:
              - name: a
                address: C0:FF:EE:00:00:01
                profiles: [room]
                publish: {streams: {ari: {qos: 0}, air: {deadband: {temprature: 1}}, air_2: {qos: 1}, air_x: {qos: 1}}}
                controls: [led]
            """
        let outcome = try await check(text, with: ["p/room.yaml": profile])
        #expect(outcome.code == 78)
        #expect(outcome.complaints.contains("g.yaml:6:25: error: no profile of the device has a stream 'ari'; did you"))
        #expect(!outcome.complaints.contains("a stream 'air_2'"))
        #expect(outcome.complaints.contains("a stream 'air_x'"))
        #expect(outcome.complaints.contains("a metric 'temprature'; did you mean 'temperature'?"))
        #expect(
            outcome.complaints.contains("g.yaml:7:16: error: no profile of the device has a control 'led'; there is")
        )
    }

    @Test func `names that a device without profiles may give its values itself are warnings`() async throws {
        let text = """
            profiles: {paths: [p]}
            devices:
              - name: a
                address: C0:FF:EE:00:00:01
                silence: {soil_temp: 30s, y: 1h}
                publish: {deadband: {soil_temp: 0.5}, streams: {soil_temp_2: {deadband: {soil_temp_2: 1}}}}
            """
        let outcome = try await check(text, with: ["p/beacon.yaml": Self.beacon])
        let advice = "it has an effect only if the device describes it itself; gattherd profile show PROFILE lists the"
        let words = ["stream 'soil_temp'; \(advice) streams", "metric 'soil_temp'; \(advice) metrics"]
        #expect(outcome.code == 0, "\(outcome.complaints)")
        for word in words { #expect(outcome.complaints.contains("warning: no profile has a \(word)")) }
        #expect(outcome.complaints.contains("warning: no profile has a stream 'soil_temp_2'; "))
        #expect(outcome.complaints.contains("itself; did you mean 'x'?"))
    }

    @Test(arguments: [
        ("silence: {Soil: 30s}", "Soil"), ("silence: {lease: 30s}", "lease"),
        ("publish: {streams: {'soil temp': {qos: 0}}}", "soil temp"),
    ])
    func `a name that no device can give itself is an error`(keys: String, name: String) async throws {
        let text = "profiles: {paths: [p]}\ndevices: [{name: a, address: C0:FF:EE:00:00:01, \(keys)}]\n"
        let outcome = try await check(text, with: ["p/beacon.yaml": Self.beacon])
        #expect(outcome.code == 78)
        #expect(outcome.complaints.contains("error: no profile of the device has a stream '\(name)'"))
    }

    @Test func `files of TLS are checked, and a key that everybody can read is a warning`() async throws {
        let authority = try await Authority()
        let identity = try await authority.identity(for: "DNS:gateway")
        let text = """
            profiles: {paths: [p]}
            mqtt:
              url: mqtts://broker.lan
              tls: {ca: \(authority.certificate), certificate: \(identity.certificate), key: KEY}
            """
        let missing = try await check(text)
        #expect(missing.code == 78)
        #expect(missing.complaints.contains("error: 'KEY' cannot be used: No such file or directory"))
        let key = try String(contentsOfFile: identity.key, encoding: .utf8)
        let exposed = try await check(text, with: ["KEY": key])
        #expect(exposed.code == 0)
        #expect(exposed.complaints.contains("warning: every user of this host can read 'KEY'; run: chmod o-rwx 'KEY'"))
    }

    @Test(arguments: [["t": "short\n"], [:]])
    func `an unusable or missing token is reported with a command that makes one`(files: [String: String]) async throws
    {
        let outcome = try await check("http: {listen: '127.0.0.1:8780', token_file: t}\n", with: files)
        #expect(outcome.code == 78)
        #expect(outcome.complaints.contains("(umask 027; openssl rand -hex 32 > 't'; chgrp gattherd 't')"))
    }

    @Test func `the error about a text file named .so has the place of its folder in the file`() async throws {
        let outcome = try await check("profiles:\n  paths: [p]\n", with: ["p/x.so": "hello\n"])
        #expect(outcome.code == 78)
        #expect(outcome.complaints.hasPrefix("g.yaml:2:11: error: the profile p/x.so is refused: it cannot be loaded"))
        #expect(outcome.complaints.contains("move it out of the folder"))
    }

    @Test func `a mistake in a declarative profile has its place in the profile`() async throws {
        let outcome = try await check("profiles: {paths: [p]}\n", with: ["p/x.yaml": "contract: 1\nprofil: x\n"])
        #expect(outcome.code == 78)
        #expect(outcome.complaints.hasPrefix("p/x.yaml:"))
        #expect(outcome.complaints.contains(": error: "))
    }

    @Test func `a missing file is an error`() async throws {
        let (code, _) = try await Programs.run(Programs.path("gattherd"), ["check", "/nowhere/g.yaml"])
        #expect(code == 78)
    }

    @Test func `a warning alone is exit code 0`() async throws {
        let broker = "mqtt: {url: 'mqtt://a', username: u, password_file: secret}"
        let outcome = try await check("profiles: {paths: [p]}\n\(broker)\n", with: ["secret": "s\n"])
        #expect(outcome.code == 0)
        #expect(outcome.complaints.hasPrefix("g.yaml:2:"))
        #expect(outcome.complaints.contains(": warning: every user of this host can read 'secret'"))
    }

    @Test func `files of gattherd.d are part of the configuration`() async throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.file("gattherd.d"), withIntermediateDirectories: true)
        try folder.write("gateway: b\n", to: "gattherd.d/a.yaml")
        let file = try folder.write("gateway: a\n", to: "g.yaml")
        let errors = folder.file("errors")
        let (code, _) = try await Programs.run(Programs.path("gattherd"), ["check", file], errors: errors)
        #expect(code == 78)
        let text = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(text.contains("gattherd.d/a.yaml:1:1: error: 'gateway' is set at \(file):1:1 already"))
    }

    @Test func `a gattherd.d that cannot be listed is an error`() async throws {
        let outcome = try await check("gateway: a\n", with: ["gattherd.d": "no folder\n"])
        #expect(outcome.code == 78)
        #expect(outcome.complaints.contains("gattherd.d: error: cannot read it: Not a directory"))
    }

    @Test func `a missing folder of history is an error`() async throws {
        let outcome = try await check("history: {path: /nowhere/gattherd.db}\nprofiles: {paths: [p]}\n")
        #expect(outcome.code == 78)
        #expect(outcome.complaints.contains("g.yaml:1:17: error: history's folder '/nowhere' cannot be used"))
        #expect(outcome.complaints.contains("run: mkdir -p '/nowhere'"))
    }

    @Test func `the JSON output has the same findings`() async throws {
        struct Finding: Decodable, Equatable {
            let file: String
            let line: Int?
            let column: Int?
            let severity: String
            let kind: String
        }
        let outcome = try await check("gatway: x\nlog: {level: loud}\n", "--json")
        #expect(outcome.code == 78)
        #expect(outcome.complaints.isEmpty)
        let findings = try JSONDecoder().decode([Finding].self, from: Data(outcome.output.utf8))
        #expect(
            findings == [
                Finding(file: "g.yaml", line: 1, column: 1, severity: "error", kind: "unknown_key"),
                Finding(file: "g.yaml", line: 2, column: 14, severity: "error", kind: "invalid_value"),
            ]
        )
    }

    @Test(arguments: [
        ["chek"], ["check", "--jsn"], ["check", "a", "b"], ["set", "strap"], ["profile"], ["history", "--config"], [],
        ["run", "extra"], ["check", "--json=1"],
    ])
    func `unknown words end with exit code 64`(words: [String]) async throws {
        #expect(try await Programs.run(Programs.path("gattherd"), words) == (64, ""))
    }

    @Test(arguments: [["help", "db"], ["db", "--help"]])
    func `the help of a group of commands lists them`(words: [String]) async throws {
        let (code, output) = try await Programs.run(Programs.path("gattherd"), words)
        #expect(code == 0)
        #expect(output.hasPrefix("gattherd db: one of\n  gattherd db check [options]\n"), "\(output)")
    }

    @Test func `a mistake in the second word of a command is named before the list`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("errors")
        #expect(try await Programs.run(Programs.path("gattherd"), ["fleet", "stauts"], errors: path).0 == 64)
        let complaints = try String(contentsOfFile: path, encoding: .utf8)
        let question = "gattherd: there is no command 'fleet stauts'; did you mean 'fleet status'?\n"
        #expect(complaints.hasPrefix(question + "gattherd fleet: one of\n"), "\(complaints)")
    }

    @Test(arguments: [
        (["chek"], "there is no command 'chek'; did you mean 'check'? See gattherd --help"),
        (["zzzzzz"], "there is no command 'zzzzzz'; see gattherd --help"),
        (["profile", "test", "/nowhere.yaml"], "/nowhere.yaml: there is no such file or folder"),
    ])
    func `a message names the mistake in the command line`(words: [String], explanation: String) async throws {
        let folder = try TemporaryFolder()
        _ = try await Programs.run(Programs.path("gattherd"), words, errors: folder.file("errors"))
        let complaints = try String(contentsOfFile: folder.file("errors"), encoding: .utf8)
        #expect(complaints == "gattherd: \(explanation)\n")
    }

    @Test(arguments: [
        [], ["run"], ["check"], ["doctor"], ["status"], ["why"], ["connect"], ["disconnect"], ["set"], ["history"],
        ["rejects"],
        ["simulate"],
        ["profile", "list"], ["profile", "show"], ["profile", "decode"],
    ])
    func `each command has help`(command: [String]) async throws {
        let (code, output) = try await Programs.run(Programs.path("gattherd"), command + ["--help"])
        #expect(code == 0)
        #expect(output.contains("Usage: gattherd \((command.isEmpty ? ["COMMAND"] : command).joined(separator: " "))"))
    }
}
