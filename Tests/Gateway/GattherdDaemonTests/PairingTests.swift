import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdModel
import GattherdSync
import TestKit
import Testing

@Suite(.timeLimit(.minutes(3))) struct PairingTests {
    private static let profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
    private static let refusal = BluetoothError(.authentication, "Authentication Failed")

    private func bench(_ method: DevicePairing.Method = .onDemand, repairsBond: Bool = false) throws -> Bench {
        try Bench([Self.profile], pairing: DevicePairing(method, repairsBond: repairsBond))
    }

    private func pairings(_ bench: Bench) -> [PairingMethod] {
        bench.central.calls.state.compactMap { if case .pair(let method) = $0 { method } else { nil } }
    }

    // MARK: - Time of pairing

    @Test(arguments: [(DevicePairing.Method.justWorks, PairingMethod.justWorks), (.compare, .compare)])
    func `a device configured to pair does so before any request`(
        configured: DevicePairing.Method,
        expected: PairingMethod
    ) async throws {
        let bench = try bench(configured)
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        let calls = bench.central.calls.state.filter { [.pair(expected), .subscribe, .read].contains($0) }
        #expect(calls == [.pair(expected), .subscribe, .read])
    }

    @Test(arguments: [DevicePairing.Method.never, .onDemand])
    func `a device that needs no encryption is not paired`(method: DevicePairing.Method) async throws {
        let bench = try bench(method)
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(pairings(bench).isEmpty)
    }

    @Test func `a bonded device is not paired again`() async throws {
        let bench = try bench(.justWorks)
        try await bench.run {
            bench.powerOn(isPaired: true)
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(pairings(bench).isEmpty)
    }

    @Test func `a request refused for lack of encryption starts pairing`() async throws {
        let bench = try bench()
        bench.central.state.withLock { $0.readErrors = [BluetoothError(.authentication, "Not paired")] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(pairings(bench) == [.justWorks])
    }

    @Test func `a device that may not pair fails when a request needs encryption`() async throws {
        let bench = try bench(.never)
        bench.central.state.withLock { $0.readErrors = [BluetoothError(.authentication, "Not paired")] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .failed)
        }
        #expect(bench.supervisor.status.link(of: "strap")?.reason == .authentication)
        #expect(pairings(bench).isEmpty)
    }

    @Test func `an optional stream on a bonded link may fail alone`() async throws {
        let bench = try bench()
        bench.central.state.withLock { $0.readErrors = [BluetoothError(.authentication, "Not Authorized")] }
        try await bench.run {
            bench.powerOn(isPaired: true)
            await bench.announcer.wait(for: "strap", .ready)
        }
    }

    @Test func `a refused pairing fails the link and records an event`() async throws {
        let bench = try bench(.justWorks)
        bench.central.state.withLock { $0.pairingError = Self.refusal }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .failed)
            await bench.store.wait { store in store.events.contains { $0.kind == "bond" } }
        }
        let status = try #require(bench.supervisor.status.link(of: "strap"))
        #expect(status.reason == .authentication)
        #expect(status.detail?.contains("Authentication Failed") == true)
        #expect(!bench.central.calls.state.contains(.read))
    }

    @Test func `a refused pairing fails the link also if the disconnect arrives first`() async throws {
        let bench = try bench(.justWorks)
        bench.central.state.withLock { $0.pairingError = Self.refusal }
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .pair(.justWorks))
            bench.central.tell.yield(.disconnected(bench.id))
            await bench.announcer.wait(for: "strap", .failed)
        }
    }

    @Test func `a device that disconnects at each request is paired, then rejected`() async throws {
        let bench = try bench()
        let dropped = BluetoothError(.att(0x0E), "Operation failed with ATT error: 0x0e")
        bench.central.state.withLock { state in
            state.pairingError = Self.refusal
            // Only ends soon after a request count, and a busy machine may be late.
            state.readErrors = Array(repeating: dropped, count: 50)
        }
        try await bench.run {
            bench.powerOn()
            await withTaskGroup { group in
                group.addTask {
                    for times in 1...50 where !Task.isCancelled {
                        await bench.central.wait(for: .read, times: times)
                        bench.reportPeripheral(isConnected: true)
                        bench.central.tell.yield(.disconnected(bench.id))
                        bench.reportPeripheral(isConnected: false)
                    }
                }
                await bench.announcer.wait(for: "strap", .failed)
                group.cancelAll()
            }
        }
        #expect(pairings(bench) == [.justWorks])
    }

    // MARK: - Passkeys

    @Test func `the passkey file is read for each pairing`() async throws {
        let folder = try TemporaryFolder()
        let file = folder.path + "/pin"
        let bench = try bench(.passkey(file: file))
        try folder.write("000042\n", to: "pin")
        bench.central.state.withLock { $0.pairingError = BluetoothError(.timedOut, "no answer") }
        let (first, second) = (try #require(Passkey("000042")), try #require(Passkey("777777")))
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .pair(.passkey(first)))
            try folder.write("777777", to: "pin")
            await bench.central.wait(for: .pair(.passkey(second)))
            bench.central.state.withLock { $0.pairingError = nil }
            await bench.announcer.wait(for: "strap", .ready)
        }
        let details = await bench.store.events.map(\.detail).joined()
        #expect(!details.contains("000042") && !details.contains("777777"))
    }

    @Test func `a device without its passkey file fails with advice`() async throws {
        let bench = try bench(.passkey(file: "/nowhere/pin"))
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .failed)
        }
        let status = try #require(bench.supervisor.status.link(of: "strap"))
        #expect(status.reason == .authentication)
        #expect(status.detail?.contains("pin_file '/nowhere/pin' cannot be read") == true)
    }

    @Test(arguments: ["", "12345", "1234567\n", "secret", "\n123456"])
    func `an invalid passkey file is refused and its content not shown`(text: String) throws {
        let folder = try TemporaryFolder()
        try folder.write(text, to: "pin")
        let error = #expect(throws: PinFileError.self) { _ = try PinFile.read(folder.path + "/pin") }
        #expect(error?.description.contains("six digits") == true)
        #expect(error?.description.contains("secret") == false)
        #expect(throws: PinFileError.self) { _ = try PinFile.read(folder.path) }
    }

    // MARK: - Requests of bluetoothd

    @Test func `only enrolled devices may pair`() async throws {
        let bench = try bench()
        let stranger = try #require(BluetoothAddress("C0:FF:EE:00:00:99"))
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            let delegate = try #require(bench.central.state.withLock { $0.pairingDelegate })
            #expect(delegate.answer(.authorization, from: bench.id) == .accepted)
            let other = PeripheralID(adapter: bench.adapter, address: stranger)
            guard case .rejected = delegate.answer(.authorization, from: other) else {
                Issue.record("a stranger may pair")
                return
            }
            #expect(bench.supervisor.status.link(of: "strap")?.state == .ready)
        }
    }

    @Test(arguments: [DevicePairing.Method.never, .passkey(file: "/nowhere")])
    func `a device that may not pair, or lacks its passkey, is rejected when it starts pairing`(
        method: DevicePairing.Method
    ) async throws {
        let bench = try bench(method)
        bench.central.state.withLock { $0.hangingReads = 1 }
        try await bench.run {
            bench.powerOn(isPaired: method != .never)
            await bench.central.wait(for: .read)
            let delegate = try #require(bench.central.state.withLock { $0.pairingDelegate })
            guard case .rejected = delegate.answer(.authorization, from: bench.id) else {
                Issue.record("it may pair")
                return
            }
            await bench.announcer.wait(for: "strap", .failed)
        }
        #expect(bench.supervisor.status.link(of: "strap")?.reason == .authentication)
    }

    @Test func `a request without a response after pairing replaces the link and keeps the device`() async throws {
        let bench = try bench()
        bench.central.state.withLock { $0.hangingReads = 1 }
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .read)
            bench.reportPeripheral(isConnected: true, isResolved: true, isPaired: true)
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(bench.central.calls.state.filter { $0 == .connect }.count == 2)
    }

    // MARK: - Lost bonds

    /// Ends the link of a bonded peripheral three times before its services are resolved.
    private func loseBond(_ bench: Bench) async {
        for times in 1...3 {
            // The attempt has succeeded, but the session ends early.
            await bench.central.wait(for: .read, times: times)
            bench.reportPeripheral(isConnected: true, isPaired: true)
            bench.central.tell.yield(.disconnected(bench.id))
            bench.reportPeripheral(isConnected: false, isPaired: true)
        }
    }

    @Test func `a lost bond fails the link until a person removes it`() async throws {
        let bench = try bench()
        bench.central.state.withLock { state in
            state.bonds = [Bond(peripheral: bench.id)]
            state.bonds[0].isBonded = true
            state.hangingReads = 3
        }
        try await bench.run {
            bench.powerOn(isPaired: true)
            await loseBond(bench)
            await bench.announcer.wait(for: "strap", .failed)
            let detail = try #require(bench.supervisor.status.link(of: "strap")?.detail)
            #expect(detail.contains("gattherd bond forget strap"))
            try await bench.supervisor.bonds.forget("strap")
            bench.central.tell.yield(.peripheralRemoved(bench.id))
            bench.reportPeripheral(isConnected: false)
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(bench.central.calls.state.contains(.forget))
        #expect(pairings(bench) == [.justWorks])
    }

    @Test(arguments: [false, true])
    func `the bond failure that bluetoothd reports is accepted`(repairsBond: Bool) async throws {
        let bench = try bench(repairsBond: repairsBond)
        bench.central.state.withLock {
            $0.connectErrors = [BluetoothError(.authentication, "br-connection-key-missing")]
        }
        try await bench.run {
            bench.powerOn(isPaired: true)
            if repairsBond {
                await bench.central.wait(for: .forget)
            } else {
                await bench.announcer.wait(for: "strap", .failed)
            }
        }
        #expect(bench.announcer.statuses.state["strap"]?.contains(.failed) == !repairsBond)
    }

    @Test func `a lost bond is repaired if configured`() async throws {
        let bench = try bench(repairsBond: true)
        bench.central.state.withLock { $0.hangingReads = 3 }
        try await bench.run {
            bench.powerOn(isPaired: true)
            await loseBond(bench)
            await bench.central.wait(for: .forget)
            bench.central.tell.yield(.peripheralRemoved(bench.id))
            bench.reportPeripheral(isConnected: false)
            await bench.announcer.wait(for: "strap", .ready)
            await bench.store.wait { store in store.events.filter { $0.kind == "bond" }.count == 2 }
        }
        #expect(bench.announcer.statuses.state["strap"]?.contains(.failed) == false)
        #expect(pairings(bench) == [.justWorks])
    }

    // MARK: - Requests of people

    @Test func `only bonds and configured devices are listed`() async throws {
        let bench = try bench()
        let addresses = try ["C0:FF:EE:00:00:01", "C0:FF:EE:00:00:02", "C0:FF:EE:00:00:03"].map {
            try #require(BluetoothAddress($0))
        }
        var bonds = addresses.map { Bond(peripheral: PeripheralID(adapter: bench.adapter, address: $0)) }
        (bonds[1].isBonded, bonds[1].name) = (true, "watch")
        bench.central.state.withLock { [bonds] in $0.bonds = bonds }
        let listed = try await bench.supervisor.bonds.list()
        #expect(listed.map(\.address) == ["C0:FF:EE:00:00:01", "C0:FF:EE:00:00:02"])
        #expect(listed.map(\.device) == ["strap", nil])
        #expect(listed.map(\.bonded) == [false, true])
    }

    @Test func `the bond of a peripheral that is no device is found by its address in any notation`() async throws {
        let bench = try bench()
        let address = try #require(BluetoothAddress("C0:FF:EE:00:00:02"))
        var bond = Bond(peripheral: PeripheralID(adapter: bench.adapter, address: address))
        bond.isBonded = true
        bench.central.state.withLock { [bond] in $0.bonds = [bond] }
        try await bench.supervisor.bonds.forget("c0-ff-ee-00-00-02")
        #expect(bench.central.calls.state.contains(.forget))
    }

    @Test(arguments: ["nobody", "C0:FF:EE:00:00:99", "strap"])
    func `removing a missing bond is an error`(who: String) async throws {
        let bench = try bench()
        await #expect(throws: BondError.self) { try await bench.supervisor.bonds.forget(who) }
        #expect(!bench.central.calls.state.contains(.forget))
    }
}
