import GattherdProcess
import Glibc
import TestKit
import Testing

/// The program `gattherd-sim`.
@Suite(.timeLimit(.minutes(3))) struct SimulatorProgramTests {
    private struct Run {
        let child: ChildProcess
        let bus: String

        init(_ folder: TemporaryFolder) async throws {
            let scenario = try folder.write(
                "peripherals: [{name: strap, kind: heart-rate, address: C0:FF:EE:00:00:01}]\n",
                to: "one.yaml"
            )
            let output = try OutputFile(folder.file("sim.out"))
            let child = try ChildProcess(
                Programs.path("gattherd-sim"),
                ["run", scenario],
                output: .descriptor(output.descriptor)
            )
            try await eventually { !output.lines.isEmpty || child.exitStatus != nil }
            bus = String(output.lines.first ?? "")
            self.child = child
        }

        func order(_ words: String) async throws -> Int32 {
            let order = words.split(separator: " ").map(String.init)
            return try await Programs.run(Programs.path("gattherd-sim"), ["ctl", "--bus", bus] + order).0
        }
    }

    @Test func `orders of the simulator are carried out or refused`() async throws {
        let run = try await Run(try TemporaryFolder())
        for order in [
            "status", "vanish strap", "appear strap", "silence strap all", "silence strap off", "slow strap 0.5",
            "slow strap 20ms", "refuse strap", "refuse strap 3", "advertise strap off", "advertise strap on",
            "forget strap", "rate strap 5", "power hci0 off", "power hci0 on", "hang on", "hang hci0 off",
            "fail-next strap Connect", "change-services strap 180d",
        ] { #expect(try await run.order(order) == 0, "\(order)") }
        for order in ["drop strap", "burst strap 5", "forget nobody", "hang hci7 on"] {
            #expect(try await run.order(order) == EX_DATAERR, "\(order)")
        }
        for order in ["slow strap soon", "refuse strap -1", "advertise strap", "hang", "dance"] {
            #expect(try await run.order(order) == EX_USAGE, "\(order)")
        }
        run.child.signal(SIGTERM)
        #expect(await run.child.wait() == .exited(0))
        #expect(try await run.order("status") == EX_UNAVAILABLE)
    }

    @Test func `a scenario of several gateways has a bus for each, and a line with its name`() async throws {
        let folder = try TemporaryFolder()
        let scenario = try folder.write(
            "gateways: [{name: west, at: [0, 0]}, {name: east, at: [9, 0]}]\n"
                + "peripherals: [{name: strap, kind: heart-rate, address: C0:FF:EE:00:00:01, at: [1, 1]}]\n",
            to: "site.yaml"
        )
        let program = Programs.path("gattherd-sim")
        let output = try OutputFile(folder.file("sim.out"))
        let child = try ChildProcess(program, ["run", scenario], output: .descriptor(output.descriptor))
        try await eventually { output.lines.count >= 2 || child.exitStatus != nil }
        let words = output.lines.map { $0.split(separator: " ").map(String.init) }
        #expect(words.map(\.first) == ["west", "east"])
        for bus in words.compactMap(\.last) {
            #expect(bus.hasPrefix("unix:path=/"))
            #expect(try await Programs.run(program, ["ctl", "--bus", bus, "status"]).1.hasPrefix("strap"))
        }
        #expect(Set(words.map(\.last)).count == 2)
        child.signal(SIGTERM)
        #expect(await child.wait() == .exited(0))
        #expect(try await Programs.run(program, ["run", "--bus", words[0][1], scenario]).0 == EX_USAGE)
    }

    @Test func `the bus of a killed simulator ends`() async throws {
        let run = try await Run(try TemporaryFolder())
        #expect(try await run.order("status") == 0)
        run.child.signal(SIGKILL)
        #expect(await run.child.wait() == .signalled(SIGKILL))
        try await eventually { !isListening(run.bus) }
    }

    /// Returns true if a process accepts connections at the socket of a bus.
    private func isListening(_ bus: String) -> Bool {
        let path = bus.dropFirst("unix:path=".count)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        return unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }
}
