import GattherdProcess
import Glibc
import TestKit
import Testing

/// Commands that connect to BlueZ themselves, on a host whose second adapter hears the probe.
@Suite(.timeLimit(.minutes(3))) struct AdapterOptionTests {
    private static let address = "00:00:5E:00:53:01"
    private static let scenario = """
        timing: quick
        adapters: [{name: hci0}, {name: hci1, address: "\(address)"}]
        peripherals: [{name: probe, kind: custom, address: "C0:FF:EE:00:00:09", adapters: [hci1], battery: 77}]
        """

    private func configure(_ bench: PeripheralBench, _ bluetooth: String, _ device: String) throws {
        let text = """
            gateway: lab
            bluetooth: {bus: '\(bench.bus)'\(bluetooth)}
            devices: [{name: probe, address: "C0:FF:EE:00:00:09"\(device)}]
            """
        try bench.folder.write(text + "\n", to: "gattherd.yaml")
    }

    @Test(arguments: [
        (["--adapter", "hci1"], "", ""), (["--adapter", address], ", adapters: ['00:00:5E:00:53:02']", ""),
        ([], "", ", adapter: '\(address)'"), ([], ", adapters: ['\(address)']", ""),
    ])
    func `the requested or configured adapter is used`(
        words: [String],
        bluetooth: String,
        device: String
    ) async throws {
        let bench = try await PeripheralBench(Self.scenario)
        try configure(bench, bluetooth, device)
        #expect(try await bench.run(["read", "probe", "2a19"] + words) == (0, "4d  = battery_level 77 %\n"))
    }

    @Test(arguments: [["scan", "--seconds", "1"], ["read", "probe", "2a19"]])
    func `the error names the missing adapter`(words: [String]) async throws {
        let bench = try await PeripheralBench(Self.scenario)
        #expect(try await bench.run(words + ["--adapter", "hci7"]).0 == 69)
        #expect(try bench.text("err").contains("there is no adapter hci7"))
    }

    @Test func `a device is reached on the adapter of the daemon's link`() async throws {
        let bench = try await PeripheralBench(Self.scenario)
        let daemon = try ChildProcess(
            Programs.path("gattherd"),
            ["run", "--config", bench.folder.file("gattherd.yaml")],
            errors: .null
        )
        defer { daemon.signal(SIGKILL) }
        try await eventually { try await bench.run("status").1.contains(/probe +ready/) }
        #expect(try await bench.run("read", "probe", "2a19") == (0, "4d  = battery_level 77 %\n"))
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }
}
