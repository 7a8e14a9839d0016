import BlueZKit
import GattherdDBus
import TestKit
import Testing

/// The state after a loss of the adapter or of bluetoothd.
@Suite(.timeLimit(.minutes(10)), .serialized) struct HostTests {
    @Test func `powering off ends links, sockets and scans, and powering on restores none`() async throws {
        try await BlueZFixture.run(.strap("strap", count: 2)) { fixture in
            let (adapter, straps) = (fixture.client.adapter, fixture.names.map { fixture.device($0) })
            for strap in straps { try await strap.findAndConnect() }
            let rate = try await straps[0].characteristic("2a37")
            let socket = try await rate.acquire()
            try await adapter.startDiscovery()
            fixture.client.removeEvents()
            try await fixture.order("power", "hci0", "off")
            for strap in straps {
                let events = try await fixture.client.waitForEvents { $0.signals("Connected", false, at: strap.path) }
                let end = try #require(events.firstIndex(of: "Connected", false, at: strap.path))
                #expect(events[end].value("ServicesResolved", of: strap.path)?.bool == false, "in one signal")
            }
            let events = try await fixture.client.waitForEvents { $0.signals("Powered", false, at: adapter.path) }
            let end = try #require(events.firstIndex(of: "Powered", false, at: adapter.path))
            #expect(events[end].value("Discovering", of: adapter.path)?.bool == false, "in one signal")
            try await eventually { socket.isHungUp }
            #expect(try await straps[0].characteristic("2a37") == rate, "objects stay")
            try await fixture.order("power", "hci0", "on")
            #expect(try await !adapter.isTrue("Discovering"))
            await adapter.expect("StopDiscovery", endsIn: "org.bluez.Error.Failed: No discovery started")
            await adapter.expect("StartDiscovery", endsIn: "ok", "the session is gone")
            for strap in straps { #expect(try await !strap.isTrue("Connected")) }
            try await straps[0].connect()
            #expect(try await !rate.isTrue("NotifyAcquired"))
            socket.close()
        }
    }

    @Test func `unplugging an adapter removes its objects, and plugging it in restores the connected devices`()
        async throws
    {
        try await BlueZFixture.run(.strap("strap", count: 2)) { fixture in
            let (adapter, straps) = (fixture.client.adapter, fixture.names.map { fixture.device($0) })
            try await straps[1].find()
            try await straps[0].findAndConnect()
            fixture.client.removeEvents()
            try await fixture.order("unplug", "hci0")
            let events = try await fixture.client.waitForEvents { $0.removed.contains(adapter.path) }
            #expect(events.signals("Connected", false, at: straps[0].path))
            #expect(events.removed.last == adapter.path, "the adapter is the last")
            #expect(Set(events.removed).isSuperset(of: straps.map(\.path)))
            try await fixture.order("plug", "hci0")
            try await eventually { (try? await adapter.isTrue("Powered")) ?? false }
            try await eventually { try await straps[0].exists() }
            #expect(try await !straps[1].exists())
            #expect(try await straps[0].attributes() == [])
            try await straps[0].connect()
        }
    }

    @Test func `a hung controller starts no scan until a power cycle`()
        async throws
    {
        try await BlueZFixture.run(.strap()) { fixture in
            let adapter = fixture.client.adapter
            try await fixture.order("hang", "hci0", "on")
            let failure = "org.bluez.Error.InProgress: Operation already in progress"
            await adapter.expect("StartDiscovery", endsIn: failure)
            try await fixture.order("hang", "hci0", "off")
            try await fixture.order("power", "hci0", "off")
            try await fixture.order("power", "hci0", "on")
            try await fixture.device("strap").findAndConnect()
        }
    }

    @Test func `a graceful exit of bluetoothd signals every disconnect first`() async throws {
        try await BlueZFixture.run(.strap("strap", count: 2)) { fixture in
            let straps = fixture.names.map { fixture.device($0) }
            try await straps[1].find()
            try await straps[0].findAndConnect()
            fixture.client.removeEvents()
            try await fixture.order("restart-daemon", "0ms", "graceful")
            let events = try await fixture.client.waitForEvents { $0.contains(.daemon(isRunning: false)) }
            let end = try #require(events.firstIndex(of: .daemon(isRunning: false)))
            let before = [BusEvent](events[..<end])
            #expect(before.signals("Connected", false, at: straps[0].path))
            #expect(Set(before.removed).isSuperset(of: straps.map(\.path)))
            try await expectOnlyTheConnectedOne(straps, fixture)
        }
    }

    @Test func `a killed bluetoothd signals nothing, and its sockets hang up`() async throws {
        try await BlueZFixture.run(.strap("strap", count: 2)) { fixture in
            let straps = fixture.names.map { fixture.device($0) }
            try await straps[1].find()
            try await straps[0].findAndConnect()
            let socket = try await straps[0].characteristic("2a37").acquire()
            fixture.client.removeEvents()
            try await fixture.order("restart-daemon", "3000ms")
            let events = try await fixture.client.waitForEvents { $0.contains(.daemon(isRunning: true)) }
            let end = try #require(events.firstIndex(of: .daemon(isRunning: false)))
            #expect([BusEvent](events[..<end]) == [])
            #expect(socket.isHungUp)
            socket.close()
            try await expectOnlyTheConnectedOne(straps, fixture)
        }
    }

    /// Expects the objects after a restart.
    ///
    /// The first strap, which was connected, has no attributes and connects without a scan. The second strap and all
    /// sessions were removed.
    private func expectOnlyTheConnectedOne(_ straps: [BlueZObject], _ fixture: BlueZFixture) async throws {
        let adapter = fixture.client.adapter
        try await eventually { (try? await adapter.isTrue("Powered")) ?? false }
        #expect(try await straps[0].exists())
        #expect(try await !straps[1].exists())
        #expect(try await straps[0].attributes() == [])
        // The kernel may still be about to end a link that a killed bluetoothd has left.
        try await eventually { try await !straps[0].isTrue("Connected") }
        await adapter.expect("StopDiscovery", endsIn: "org.bluez.Error.Failed: No discovery started")
        try await straps[0].connect()
        let rate = try await straps[0].characteristic("2a37")
        #expect(try await !rate.isTrue("Notifying"))
    }
}
