import Foundation
import GattherdProcess
import TestKit
import Testing

/// `gattherd add` on simulated peripherals.
@Suite(.timeLimit(.minutes(3))) struct AddCommandTests {
    private static let scenario = """
        timing: quick
        peripherals:
          - name: tag
            kind: beacon
            address: C0:FF:EE:00:00:30
            advertise:
              manufacturer_data: {0x0499: [0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F]}
          - name: hygrometer
            kind: beacon
            address: C0:FF:EE:00:00:31
            advertise:
              name: GVH5075_0123
              manufacturer_data: {0xEC88: [0003215D6400]}
          - name: twin
            kind: beacon
            address: C0:FF:EE:00:00:32
            advertise:
              name: GVH5075_4567
              manufacturer_data: {0xEC88: [0003215D6400]}
          - name: locked
            kind: beacon
            address: C0:FF:EE:00:00:33
            advertise:
              name: Shunt
              manufacturer_data: {0x02E1: [100289A302B040AF925D09A4D89AA0128BDEF48C6298A9]}
          - name: strap
            kind: heart-rate
            address: C0:FF:EE:00:00:01
            advertise: {name: Strap}
          - name: stranger
            kind: beacon
            address: C0:FF:EE:00:00:34
            advertise:
              name: Stranger
              manufacturer_data: {0x1234: ["0102"]}
        """

    /// The simulator and a daemon with one device that is never heard.
    private func bench() async throws -> PeripheralBench { try await PeripheralBench(Self.scenario) }

    private func added(_ bench: PeripheralBench, _ name: String) throws -> String {
        try bench.text("gattherd.d/\(name).yaml")
    }

    @Test func `a scan names models, and the advice is to add them`() async throws {
        let bench = try await bench()
        let table = try await bench.run("scan", "--seconds", "3").1
        #expect(table.contains(/C0:FF:EE:00:00:30 .* +Ruuvi RuuviTag/), "\(table)")
        #expect(table.contains(/C0:FF:EE:00:00:31 .* GVH5075_0123 +Govee H5075/))
        #expect(table.contains(/C0:FF:EE:00:00:34 .* Stranger +-/))
        #expect(table.hasSuffix("6 peripherals; add one as a device: gattherd add ADDRESS\n"))
        let json = try await bench.run("scan", "--seconds", "3", "--json").1
        #expect(json.contains(#""brand":"Govee","model":"H5075","profile":"govee""#))
        #expect(json.contains(#""key":"VictronConnect shows it"#))
    }

    @Test func `a device is written, the daemon reloads, and its first values are shown`() async throws {
        let bench = try await bench()
        try await bench.withLonelyDaemon {
            let (code, output) = try await bench.run("add", "c0-ff-ee-00-00-30", "--yes")
            let errors = try bench.text("err")
            #expect(code == 0, "\(errors)")
            #expect(output.contains("wrote \(bench.folder.file("gattherd.d/ruuvi-ruuvitag.yaml"))\n"))
            #expect(output.contains("ruuvi-ruuvitag:\n"))
            #expect(output.contains(/temperature +24.3 °C/), "\(output)")
            let text = try added(bench, "ruuvi-ruuvitag")
            #expect(text.contains("  - name: ruuvi-ruuvitag # Ruuvi RuuviTag\n    address: C0:FF:EE:00:00:30\n"))
            #expect(text.contains("    profiles: [ruuvitag]\n"))
            let again = try await bench.run("add", "C0:FF:EE:00:00:30", "--yes")
            #expect(again.0 == 65)
            #expect(try bench.text("err").contains("is already the device 'ruuvi-ruuvitag'"))
            let why = try await bench.run("why", "ruuvi-ruuvitag").1
            #expect(why.hasPrefix("ruuvi-ruuvitag (C0:FF:EE:00:00:30, Ruuvi RuuviTag): ready"), "\(why)")
        }
    }

    @Test func `a device that is connected gets all profiles of its services`() async throws {
        let bench = try await bench()
        try await bench.withLonelyDaemon {
            let (code, output) = try await bench.run("add", "Strap", "--name", "mine", "--yes")
            let errors = try bench.text("err")
            #expect(code == 0, "\(errors)")
            #expect(output.contains(/mine:\n  [a-z_]+ +[^ ]/), "\(output)")
            #expect(try added(bench, "mine").hasSuffix("  - name: mine\n    address: C0:FF:EE:00:00:01\n"))
        }
    }

    @Test(
        arguments: [
            (["add", "GVH5075*", "--yes"], 65, "several are possible; state its address instead of the name"),
            (["add", "C0:FF:EE:00:00:34", "--yes"], 65, "no profile decodes what C0:FF:EE:00:00:34 advertises"),
            (["add", "c0ffee000099", "--yes", "--seconds", "1"], 69, "gattherd: C0:FF:EE:00:00:99 was not heard; "),
            (["add", "strap", "--yes", "--seconds", "1"], 69, "no name or model 'strap' was heard (upper and"),
            (["add", "", "--yes"], 64, "gattherd add: ADDRESS|NAME is empty"),
            (["add", "C0:FF:EE:00:00:33", "--yes"], 65, "its advertisements are encrypted. VictronConnect shows it"),
            (["add", "C0:FF:EE:00:00:09", "--yes"], 65, "is already the device 'probe'"),
            (["add", "C0:FF:EE:00:00:99", "--yes", "--name", "Two Words"], 64, "'Two Words' is not a name"),
            (["add", "GVH5075_0123", "--yes", "--name", "probe"], 78, "probe.yaml:3:11: error: "),
            (["add", "GVH5075_0123", "--yes", "--profile", "gove"], 78, "did you mean 'govee'?"),
        ] as [([String], Int32, String)]
    )
    func `a failed addition is reported with advice, and nothing is written`(
        words: [String],
        code: Int32,
        message: String
    ) async throws {
        let bench = try await bench()
        #expect(try await bench.run(words).0 == code)
        let errors = try bench.text("err")
        #expect(errors.contains(message), "\(errors)")
        #expect(!FileManager.default.fileExists(atPath: bench.folder.file("gattherd.d")))
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `an addition that is interrupted while it listens changes nothing`(signal: Int32) async throws {
        let bench = try await bench()
        let errors = try OutputFile(bench.folder.file("err"))
        let words = ["add", "C0:FF:EE:00:00:99", "--yes", "--seconds", "600"]
        let child = try ChildProcess(
            Programs.path("gattherd"),
            words + ["--config", bench.folder.file("gattherd.yaml")],
            errors: .descriptor(errors.descriptor)
        )
        defer { child.signal(SIGKILL) }
        try await eventually { errors.lines.contains("listening for C0:FF:EE:00:00:99, at most 10m00s") }
        child.signal(signal)
        #expect(await child.wait() == .exited(1))
        #expect(errors.lines.last == "gattherd: nothing was changed")
    }

    @Test func `a key file makes a device of a sensor that encrypts`() async throws {
        let bench = try await bench()
        let key = try bench.folder.write("aff4d0995b7d1e176c0c33ecb9e70dcd\n", to: "shunt.key")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        let words = ["add", "Shunt", "--yes", "--name", "shunt"]
        let (code, _) = try await bench.run(words)
        let errors = try bench.text("err")
        #expect(code == 0, "\(errors)")
        #expect(try added(bench, "shunt").contains("    profiles: [victron]\n    bind_key_file: 'shunt.key'\n"))
    }

    @Test func `without a daemon the device is written for its next start`() async throws {
        let bench = try await bench()
        let (code, output) = try await bench.run("add", "GVH5075_0123", "--yes")
        let errors = try bench.text("err")
        #expect(code == 0, "\(errors)")
        #expect(output.hasSuffix("no daemon runs with this configuration; start it: systemctl enable --now gattherd\n"))
        try bench.folder.write("devices: []\n", to: "gattherd.d/govee-h5075-2.yaml")
        let taken = try await bench.run("add", "GVH5075_4567", "--yes")
        #expect(taken.0 == 73)
        #expect(try bench.text("err").contains("govee-h5075-2.yaml already exists; choose another name"))
    }
}

extension PeripheralBench {
    /// Runs `body` while a daemon runs whose only device is not heard.
    fileprivate func withLonelyDaemon(_ body: () async throws -> Void) async throws {
        let words = "bluetooth: {bus: '\(bus)'}\nhistory: {path: '\(folder.file("readings.db"))'}\n"
        let device = "devices: [{name: probe, address: C0:FF:EE:00:00:09}]\n"
        let file = try folder.write(words + device, to: "gattherd.yaml")
        let daemon = try ChildProcess(Programs.path("gattherd"), ["run", "--config", file], errors: .null)
        defer { daemon.signal(SIGKILL) }
        try await eventually { try await run("status").1.contains("probe") }
        try await body()
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }
}
