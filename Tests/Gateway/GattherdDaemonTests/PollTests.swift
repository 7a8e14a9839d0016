import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdModel
import GattherdSimulator
import GattherdSync
import Testing

/// Requests that are written at an interval, and their answers.
@Suite(.timeLimit(.minutes(1))) struct PollTests {
    private static func profile(
        _ requests: [WriteTemplate] = [[1], [2]],
        timeout: Duration = .seconds(3600),
        messages: MessageRule? = nil
    ) -> OctetProfile {
        var profile = OctetProfile("cells", service: 0xAAAA, characteristic: 0xBBBB)
        profile.characteristics[0].isReadAtConnect = false
        profile.characteristics[0].messages = messages
        profile.characteristics[0].poll = PollRule(
            characteristic: 0xBBBB,
            requests: requests,
            period: .milliseconds(5),
            timeout: timeout
        )
        return profile
    }

    private func writes(_ bench: Bench) -> [[UInt8]] {
        bench.central.calls.state.compactMap { call in if case .write(let octets) = call { octets } else { nil } }
    }

    @Test func `each request follows the answer to the one before`() async throws {
        let bench = try Bench([Self.profile()])
        bench.central.state.withLock { $0.answers = [[1]: [0x11], [2]: [0x12]] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            await bench.store.wait { $0.readings.count >= 4 }
        }
        #expect(writes(bench).prefix(4) == [[1], [2], [1], [2]])
        #expect(await bench.store.readings.prefix(4).map(\.values) == [17, 18, 17, 18].map { [.integer($0)] })
    }

    @Test func `a part of an answer does not count as the answer`() async throws {
        var profile = Self.profile(messages: MessageRule(extent: .fixed(2), timeout: .seconds(60)))
        let whole = CharacteristicDescriptor(
            uuid: 0xCCCC,
            stream: "whole",
            metrics: [MetricDescriptor(name: "octet")],
            subscription: .notify
        )
        profile.characteristics.append(whole)
        let bench = try Bench([profile])
        bench.central.state.withLock { $0.answers = [[1]: [0xAA]] }
        try await bench.run {
            bench.powerOn()
            // The stream without messages shows that the part has arrived.
            await bench.store.wait { $0.readings.map(\.stream) == ["whole"] }
            #expect(writes(bench) == [[1]])
            bench.central.notify([0xBB])
            await bench.central.wait(for: .write([2]))
        }
        #expect(await bench.store.readings.filter { $0.stream == "cells" }.map(\.values) == [[.integer(0xAA)]])
    }

    @Test func `a message that the end of the connection cuts off is rejected`() async throws {
        let bench = try Bench([Self.profile(messages: MessageRule(extent: .fixed(2), timeout: .seconds(60)))])
        bench.central.state.withLock { $0.answers = [[1]: [0xAA, 0xBB, 0xCC]] }
        try await bench.run {
            bench.powerOn()
            await bench.store.wait { $0.readings.count == 1 }
        }
        await bench.store.wait { !$0.rejects.isEmpty }
        #expect(await bench.store.rejects.map(\.payload) == [[0xCC]])
        #expect(await bench.store.rejects.map(\.reason) == ["incomplete message: 1 of 2 bytes"])
    }

    @Test func `a request without an answer delays the others until its time-out`() async throws {
        let bench = try Bench([Self.profile(timeout: .milliseconds(5))])
        bench.central.state.withLock { $0.answers = [[2]: [0x12]] }
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .write([2]), times: 2)
        }
        #expect(writes(bench).prefix(4) == [[1], [2], [1], [2]])
        #expect(!bench.central.calls.state.prefix { $0 != .write([2]) }.contains(.disconnect))
    }

    @Test func `failed writes keep the link, are reported once and tried again`() async throws {
        let bench = try Bench([Self.profile([[1]])])
        bench.central.state.withLock { state in
            state.writeErrors = Array(repeating: BluetoothError(.busy, "in progress"), count: 3)
            state.answers = [[1]: [0x11]]
        }
        try await bench.run {
            bench.powerOn()
            await bench.store.wait { $0.readings.count == 2 }
            await bench.store.wait { $0.events.contains { $0.kind == "stream" } }
            #expect(bench.announcer.statuses.state["strap"]?.filter { $0 == .ready }.count == 1)
        }
        let reports = await bench.store.events.filter { $0.kind == "stream" }
        #expect(reports.count == 1)
        #expect(reports.first?.detail.contains("writing a request to bbbb: in progress") == true)
    }

    @Test func `a later request that fails in each round is reported once`() async throws {
        let bench = try Bench([Self.profile()])
        bench.central.state.withLock { state in
            state.answers = [[1]: [0x11]]
            state.refusedWrite = [2]
        }
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .write([2]), times: 4)
            await bench.store.wait { $0.events.contains { $0.kind == "stream" } }
        }
        #expect(await bench.store.events.filter { $0.kind == "stream" }.count == 1)
    }

    @Test func `a device without the characteristic for requests is served and reported`() async throws {
        var profile = Self.profile()
        profile.characteristics[0].poll?.characteristic = 0xDDDD
        let bench = try Bench([profile])
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            await bench.store.wait { $0.events.contains { $0.detail.contains("no characteristic dddd") } }
            bench.central.notify([5])
            await bench.store.wait { $0.readings.count == 1 }
        }
        #expect(writes(bench).isEmpty)
    }

    // MARK: - On the simulator

    /// A battery that answers `DD A5` twice, with the two parts of a message.
    private static var battery: SimulatedSupervisor.Setup {
        var setup = SimulatedSupervisor.Setup()
        setup.devices = 1
        setup.kind = "custom"
        setup.peripherals = """
            services:
                  - uuid: fff0
                    characteristics:
                      - {uuid: fff1, properties: [notify]}
                      - uuid: fff2
                        properties: [write-without-response]
                        write:
                          answers: [{to: DD A5, on: fff1, notify: ["07 08"]}, {to: DD A5, on: fff1, notify: ["09"]}]
            """
        setup.profile = OctetProfile("pulse", service: 0xFFF0, characteristic: 0xFFF1)
        setup.profile.characteristics[0].isReadAtConnect = false
        setup.profile.characteristics[0].messages = MessageRule(extent: .fixed(3))
        setup.profile.characteristics[0].poll = PollRule(
            characteristic: 0xFFF2,
            requests: [[0xDD, 0xA5, 3]],
            period: .milliseconds(20),
            timeout: .milliseconds(100)
        )
        return setup
    }

    @Test func `answers of a peripheral become readings`() async throws {
        try await SimulatedSupervisor.run(Self.battery) { world in
            await world.store.wait { $0.readings.count >= 3 }
            #expect(world.isAllReady)
        }
    }

    @Test func `a link whose requests are not answered is replaced`() async throws {
        try await SimulatedSupervisor.run(Self.battery) { world in
            try await world.order(.silence("strap-1", .notifications))
            await world.wait { world.readyCount("strap-1") >= 2 }
            let events = await world.store.events
            #expect(events.contains { $0.detail.contains(#""reason":"silent""#) })
        }
    }
}
