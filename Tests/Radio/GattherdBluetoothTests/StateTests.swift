import GattherdSync
import TestKit
import Testing

@testable import GattherdBluetooth

@Suite(.timeLimit(.minutes(1))) struct StateTests {
    private static let other = AdapterStatus(
        address: BluetoothAddress(value: 0x00005E_005310),
        name: "hci10",
        isPowered: true,
        isDiscovering: false
    )

    private func wait(_ central: Central, for state: CentralState) async {
        for await now in central.states where now == state { return }
    }

    @Test func `the state follows bluetoothd and the adapter, and its stream begins with it`() async throws {
        let backend = FakeBackend(isPowered: nil)
        try await Bench.run(on: backend) { bench in
            #expect(bench.central.state == .unknown)
            var states = bench.central.states.makeAsyncIterator()
            #expect(await states.next() == .unknown)
            let steps: [([CentralEvent], CentralState)] = [
                ([.unavailable(detail: "no bluetoothd")], .resetting),
                ([.available], .unsupported),
                ([.adapterChanged(Self.other)], .poweredOn),
                ([.adapterRemoved(Self.other.address)], .unsupported),
                ([.accessDenied(detail: "not you"), .unavailable(detail: "not you")], .unauthorized),
            ]
            for (events, state) in steps {
                for event in events { backend.say(event) }
                #expect(await states.next() == state)
            }
            var late = bench.central.states.makeAsyncIterator()
            #expect(await late.next() == .unauthorized)
            backend.setPowered(false)
        }
    }

    @Test func `an adapter that is there is never reported as missing`() async throws {
        let backend = FakeBackend(isPowered: nil)
        var waits = WaitLimits()
        waits.adapters = .seconds(3600)
        try await Bench.run(on: backend, waits: waits) { bench in
            var states = bench.central.states.makeAsyncIterator()
            _ = await states.next()
            backend.say(.available)
            backend.setPowered(true)
            #expect(await states.next() == .poweredOn)
        }
    }

    @Test func `waiting for Bluetooth ends when it is ready`() async throws {
        let backend = FakeBackend(isPowered: false)
        try await Bench.run(on: backend) { bench in
            async let ready: Void = bench.central.waitUntilReady(timeout: nil)
            await wait(bench.central, for: .poweredOff)
            backend.setPowered(true)
            try await ready
        }
    }

    @Test(
        arguments: [
            ([.available], .adapterUnavailable, "no Bluetooth adapter"),
            ([.unavailable(detail: "start it")], .serviceUnavailable, "start it"),
            ([.accessDenied(detail: "not you"), .unavailable(detail: "")], .accessDenied, ""),
            ([.available, .adapterChanged(blocked)], .adapterUnavailable, "rfkill unblock"),
            ([], .serviceUnavailable, "not answered"),
        ] as [([CentralEvent], BluetoothError.Kind, String)]
    )
    func `a failed wait for Bluetooth names what is missing`(
        events: [CentralEvent],
        kind: BluetoothError.Kind,
        words: String
    ) async throws {
        let backend = FakeBackend(isPowered: nil)
        for event in events { backend.say(event) }
        try await Bench.run(on: backend) { bench in
            for await runs in backend.runs.watch() where runs > 0 { break }
            if case .available = events.last { await wait(bench.central, for: .unsupported) }
            if let last = events.last, case .adapterChanged = last { await wait(bench.central, for: .poweredOff) }
            if let last = events.last, case .unavailable = last {
                try await eventually { bench.central.state != .unknown }
            }
            let result = await outcome {
                try await bench.central.waitUntilReady(timeout: .milliseconds(20))
            }
            #expect(result.error?.kind == kind)
            #expect(words.isEmpty || result.error?.detail.contains(words) == true)
            #expect(result.error?.operation == .waitUntilReady)
        }
    }

    private static let blocked: AdapterStatus = {
        var status = other
        status.isPowered = false
        status.isBlocked = true
        return status
    }()

    @Test func `a central that does not run reports it`() async {
        let central = Central(backend: FakeBackend())
        let result = await outcome {
            try await central.waitUntilReady(timeout: .milliseconds(10))
        }
        #expect(result.error?.detail.contains("is not running") == true)
    }

    // MARK: - Adapters

    @Test(arguments: [
        (Central.AdapterChoice.automatic, "hci0"), (.name("hci10"), "hci10"), (.address(other.address), "hci10"),
    ])
    func `the chosen adapter is used`(choice: Central.AdapterChoice, name: String) async throws {
        let backend = FakeBackend()
        backend.say(.adapterChanged(Self.other))
        try await Bench.run(on: backend, { $0.adapter = choice }) { bench in
            try await eventually { bench.central.adapters.count == 2 }
            #expect(bench.central.adapters.map(\.name) == ["hci0", "hci10"])
            #expect(bench.central.adapter?.name == name)
            await wait(bench.central, for: .poweredOn)
            backend.setPowered(false)
            guard choice == .automatic else { return }
            try await eventually { bench.central.adapter?.name == "hci10" }
        }
    }

    @Test func `a missing adapter is reported although others are there`() async throws {
        try await Bench.run(on: FakeBackend(), { $0.adapter = .name("hci7") }) { bench in
            await wait(bench.central, for: .unsupported)
            #expect(bench.central.peripheral(FakeBackend.strap.address) == nil)
            let result = await outcome {
                try await bench.central.connect(FakeBackend.strap.address)
            }
            #expect(result.error?.kind == .adapterUnavailable)
            #expect(result.error?.detail.contains("hci7") == true)
        }
    }

    // MARK: - Peripherals

    @Test func `known peripherals are retrieved by address`() async throws {
        try await Bench.run { bench in
            bench.backend.know(FakeBackend.dial) { $0.name = "Dial" }
            let addresses = [FakeBackend.strap.address, FakeBackend.dial.address]
            try await eventually { !bench.central.retrievePeripherals(addresses).isEmpty }
            let known = bench.central.retrievePeripherals(addresses)
            #expect(known.map(\.name) == ["Dial"])
            #expect(known.first?.description == "C0:FF:EE:00:00:02 (Dial)")
            try await bench.central.forget(try #require(known.first))
            #expect(bench.backend.asked.state == ["forget 2"])
        }
    }
}
