import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSimulator
import GattherdSync
import Testing

/// Links that appear up but carry no data: a real bus and supervisor, and a virtual bluetoothd.
@Suite(.timeLimit(.minutes(2))) struct SilenceTests {
    private var streaming: SimulatedSupervisor.Setup {
        var setup = SimulatedSupervisor.Setup()
        setup.rate = 50
        return setup
    }

    @Test func `links that a hung controller lost silently are replaced`() async throws {
        try await SimulatedSupervisor.run(streaming) { world in
            try await world.order(.hang(adapter: "hci0", true))
            for name in world.names { try await world.order(.drop(name)) }
            try await world.order(.hang(adapter: "hci0", false))
            await world.wait { world.names.allSatisfy { world.readyCount($0) == 2 } && world.isAllReady }
            let events = await world.store.events
            for name in world.names {
                let ends = events.filter { $0.device == name && $0.detail.contains(#""reason":"silent""#) }
                #expect(ends.count == 1, "\(name)")
                #expect(ends.first?.detail.contains("no pulse for") == true)
            }
        }
    }

    @Test func `a controller that hangs for long is recovered like a failed one`() async throws {
        try await SimulatedSupervisor.run(streaming) { world in
            try await world.order(.hang(adapter: "hci0", true))
            await world.store.wait { $0.hasRemedy(.restartDiscovery, .stall) }
            try await world.order(.hang(adapter: "hci0", false))
            await world.wait { world.names.allSatisfy { world.readyCount($0) >= 2 } && world.isAllReady }
        }
    }

    @Test func `a peripheral without new values keeps its link`() async throws {
        try await SimulatedSupervisor.run { world in
            let probes = world.supervisor.counters.silenceProbes
            while probes.value < 6 { await Task.yield() }
            #expect(world.isAllReady)
            for name in world.names { #expect(world.readyCount(name) == 1) }
        }
    }

    @Test func `a configured silence limit replaces a link that answers`() async throws {
        var setup = streaming
        setup.silence.streams = ["pulse": .stated(.milliseconds(300))]
        try await SimulatedSupervisor.run(setup) { world in
            try await world.recover { try await world.order(.silence("strap-1", .notifications)) }
            #expect(world.readyCount("strap-2") == 1)
        }
    }

    @Test func `a silence limit of never keeps a dead link`() async throws {
        var setup = streaming
        setup.silence.all = .never
        try await SimulatedSupervisor.run(setup) { world in
            try await world.order(.silence("strap-1", .all))
            try await world.recover("strap-2") { try await world.order(.drop("strap-2")) }
            #expect(world.supervisor.counters.silenceProbes.value == 0)
        }
    }
}

/// Polled streams: an unanswered read is a symptom of the link or of bluetoothd.
@Suite(.timeLimit(.minutes(1))) struct PolledSilenceTests {
    private static var polled: OctetProfile {
        var profile = OctetProfile("pulse", service: 0x180D, characteristic: 0x2A37)
        profile.characteristics[0].subscription = .poll(every: .milliseconds(5))
        return profile
    }

    private func timeouts(_ count: Int) -> [BluetoothError] {
        Array(repeating: BluetoothError(.timedOut, "no answer within 10 s"), count: count)
    }

    @Test func `a polled link is kept while bluetoothd does not answer`() async throws {
        let bench = try Bench([Self.polled])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.state.withLock { ($0.isResponsive, $0.readErrors) = (false, timeouts(3)) }
            await bench.store.wait { $0.events.contains { $0.detail.contains(#""state":"resumed""#) } }
            let events = await bench.store.events
            #expect(events.count { $0.detail.contains(#""state":"stalled""#) } == 1)
            #expect(!events.contains { $0.detail.contains(#""from":"ready""#) })
            #expect(!bench.central.calls.state.contains(.disconnect))
        }
    }

    @Test func `an advertisement of a connected device starts a probe at once, also without a silence limit`()
        async throws
    {
        let profile = OctetProfile("pulse", service: 0x180D, characteristic: 0x2A37)
        let bench = try Bench([profile], silence: DeviceSilence(all: .never))
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.reportPeripheral(isConnected: true, isResolved: true, heard: 1)
            while bench.supervisor.counters.silenceProbes.value == 0 { await Task.yield() }
        }
    }

    @Test func `a polled link that does not answer is replaced`() async throws {
        let bench = try Bench([Self.polled])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.state.withLock { $0.readErrors = timeouts(1) }
            await bench.store.wait { $0.events.contains { $0.detail.contains(#""from":"ready""#) } }
            let end = await bench.store.events.first { $0.detail.contains(#""from":"ready""#) }
            #expect(end?.detail.contains(#""reason":"silent""#) == true)
        }
    }
}
