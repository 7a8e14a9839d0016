import BlueZKit
import GattherdDBus
import TestKit
import Testing

/// The state after a loss of the adapter or of bluetoothd.
@Suite(.timeLimit(.minutes(10)), .serialized) struct HostTests {
    @Test func `powering off ends links, sockets and scans, and powering on restores none`() async throws {
        try await Scene.play(.strap("strap", count: 2)) { scene in
            let (adapter, straps) = (scene.client.adapter, scene.names.map { scene.device($0) })
            for strap in straps { try await strap.findAndConnect() }
            let rate = try await straps[0].characteristic("2a37")
            let socket = try await rate.acquire()
            try await adapter.startDiscovery()
            scene.client.forget()
            try await scene.order("power", "hci0", "off")
            for strap in straps {
                let diary = try await scene.client.see { $0.tells("Connected", false, at: strap.path) }
                let end = try #require(diary.firstIndex(of: "Connected", false, at: strap.path))
                #expect(diary[end].value("ServicesResolved", of: strap.path)?.bool == false, "in one signal")
            }
            let diary = try await scene.client.see { $0.tells("Powered", false, at: adapter.path) }
            let end = try #require(diary.firstIndex(of: "Powered", false, at: adapter.path))
            #expect(diary[end].value("Discovering", of: adapter.path)?.bool == false, "in one signal")
            try await eventually { socket.isHungUp }
            #expect(try await straps[0].characteristic("2a37") == rate, "objects stay")
            try await scene.order("power", "hci0", "on")
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
        try await Scene.play(.strap("strap", count: 2)) { scene in
            let (adapter, straps) = (scene.client.adapter, scene.names.map { scene.device($0) })
            try await straps[1].find()
            try await straps[0].findAndConnect()
            scene.client.forget()
            try await scene.order("unplug", "hci0")
            let diary = try await scene.client.see { $0.removed.contains(adapter.path) }
            #expect(diary.tells("Connected", false, at: straps[0].path))
            #expect(diary.removed.last == adapter.path, "the adapter is the last")
            #expect(Set(diary.removed).isSuperset(of: straps.map(\.path)))
            try await scene.order("plug", "hci0")
            try await eventually { (try? await adapter.isTrue("Powered")) ?? false }
            try await eventually { try await straps[0].isThere() }
            #expect(try await !straps[1].isThere())
            #expect(try await straps[0].attributes() == [])
            try await straps[0].connect()
        }
    }

    @Test func `a hung controller starts no scan until a power cycle`()
        async throws
    {
        try await Scene.play(.strap()) { scene in
            let adapter = scene.client.adapter
            try await scene.order("hang", "hci0", "on")
            let failure = "org.bluez.Error.InProgress: Operation already in progress"
            await adapter.expect("StartDiscovery", endsIn: failure)
            try await scene.order("hang", "hci0", "off")
            try await scene.order("power", "hci0", "off")
            try await scene.order("power", "hci0", "on")
            try await scene.device("strap").findAndConnect()
        }
    }

    @Test func `a terminated bluetoothd signals all ends before it leaves the bus`() async throws {
        try await Scene.play(.strap("strap", count: 2)) { scene in
            let straps = scene.names.map { scene.device($0) }
            try await straps[1].find()
            try await straps[0].findAndConnect()
            scene.client.forget()
            try await scene.order("restart-daemon", "0ms", "graceful")
            let diary = try await scene.client.see { $0.contains(.daemon(isThere: false)) }
            let end = try #require(diary.firstIndex(of: .daemon(isThere: false)))
            let before = [Sight](diary[..<end])
            #expect(before.tells("Connected", false, at: straps[0].path))
            #expect(Set(before.removed).isSuperset(of: straps.map(\.path)))
            try await expectOnlyTheConnectedOne(straps, scene)
        }
    }

    @Test func `a killed bluetoothd signals nothing, and its sockets hang up`() async throws {
        try await Scene.play(.strap("strap", count: 2)) { scene in
            let straps = scene.names.map { scene.device($0) }
            try await straps[1].find()
            try await straps[0].findAndConnect()
            let socket = try await straps[0].characteristic("2a37").acquire()
            scene.client.forget()
            try await scene.order("restart-daemon", "3000ms")
            let diary = try await scene.client.see { $0.contains(.daemon(isThere: true)) }
            let end = try #require(diary.firstIndex(of: .daemon(isThere: false)))
            #expect([Sight](diary[..<end]) == [])
            #expect(socket.isHungUp)
            socket.close()
            try await expectOnlyTheConnectedOne(straps, scene)
        }
    }

    /// After a restart the first strap, which was connected, is there without attributes and can be connected without
    /// a scan; the second is not there; sessions are gone.
    private func expectOnlyTheConnectedOne(_ straps: [BareObject], _ scene: Scene) async throws {
        let adapter = scene.client.adapter
        try await eventually { (try? await adapter.isTrue("Powered")) ?? false }
        #expect(try await straps[0].isThere())
        #expect(try await !straps[1].isThere())
        #expect(try await straps[0].attributes() == [])
        // The kernel may still be about to end a link that a killed bluetoothd has left.
        try await eventually { try await !straps[0].isTrue("Connected") }
        await adapter.expect("StopDiscovery", endsIn: "org.bluez.Error.Failed: No discovery started")
        try await straps[0].connect()
        let rate = try await straps[0].characteristic("2a37")
        #expect(try await !rate.isTrue("Notifying"))
    }
}
