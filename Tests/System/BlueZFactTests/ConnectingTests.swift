import BlueZKit
import GattherdDBus
import TestKit
import Testing

/// Creation, refusal and end of links.
@Suite(.timeLimit(.minutes(10)), .serialized) struct ConnectingTests {
    @Test func `Connect answers after the Connected signal and before the services are resolved`() async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            let strap = fixture.device("strap")
            try await strap.find()
            fixture.client.removeEvents()
            try await strap.connect()
            let events = try await fixture.client.waitForEvents { $0.signals("ServicesResolved", true, at: strap.path) }
            let answered = try #require(events.firstReply("Connect", at: strap.path))
            let resolved = try #require(events.firstIndex(of: "ServicesResolved", true, at: strap.path))
            #expect(answered < resolved)
            // bluetoothd 5.66 sometimes omits the signal of Connected, but never sends it after the reply.
            let connected = events.firstIndex(of: "Connected", true, at: strap.path)
            #expect(connected.map { $0 < answered } ?? true)
            #expect(try await strap.isTrue("Connected"))
            #expect(events[resolved].value("UUIDs", of: strap.path) != nil, "in the same signal")
            let measurement = try await strap.characteristic("2a37").path
            // bluetoothd 5.66 signals the objects before, too, unless it is busy.
            let areBefore = [BusEvent](events[..<resolved]).added.contains(measurement)
            #expect(areBefore || StackKind.current == .real)
        }
    }

    @Test func `objects outlive the link and can be read before the services are resolved again`()
        async throws
    {
        try await BlueZFixture.run(.thing) { fixture in
            let thing = fixture.device("thing")
            try await thing.findAndConnect()
            let attributes = try await thing.attributes()
            let value = try await thing.characteristic("fff5")
            try await fixture.order("drop", "thing")
            try await thing.waitForEnd()
            #expect(try await thing.attributes() == attributes)
            fixture.client.removeEvents()
            try await thing.call("Connect")
            #expect(try await value.read() == [5])
            try await thing.waitForServices()
            #expect(fixture.client.events.added.filter { $0.hasPrefix(thing.path + "/service") } == [])
        }
    }

    @Test func `during Connect a second one fails, other devices connect, and Disconnect cancels it`()
        async throws
    {
        try await BlueZFixture.run(.strap(), .strap("far")) { fixture in
            let (strap, far) = (fixture.device("strap"), fixture.device("far"))
            try await far.find()
            try await strap.find()
            try await fixture.order("vanish", "far")
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 1...2 { group.addTask { await far.outcome("Connect") } }
                #expect(try await group.next() == "org.bluez.Error.Failed: Operation already in progress")
                try await strap.connect()
                await far.expect("Disconnect", endsIn: "ok")
                #expect(try await group.next() == "org.bluez.Error.Failed: br-connection-canceled")
            }
            #expect(try await strap.isTrue("Connected"))
        }
    }

    @Test func `Connect of a connected device and Disconnect of an unconnected one succeed`() async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            let strap = fixture.device("strap")
            try await strap.find()
            await strap.expect("Disconnect", endsIn: "ok")
            try await strap.connect()
            await strap.expect("Connect", endsIn: "ok")
            await strap.expect("Disconnect", endsIn: "ok")
            #expect(try await !strap.isTrue("Connected"))
            await strap.expect("Connect", endsIn: "ok", "at once")
        }
    }

    @Test func `an attempt continues after its client has left the bus`() async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            let strap = fixture.device("strap")
            try await strap.find()
            try await fixture.order("vanish", "strap")
            let other = try await fixture.anotherClient()
            other.post(strap.path, strap.interface, "Connect")
            // Answered after the call before it has arrived.
            #expect(try await other.adapter.isTrue("Powered"))
            await other.leave()
            try await fixture.order("appear", "strap")
            try await strap.waitForServices()
        }
    }

    @Test func `a peripheral may end its link at once, and the next link stays`()
        async throws
    {
        try await BlueZFixture.run(.strap("strap", "rate: 0, connect_failures: 1")) { fixture in
            let strap = fixture.device("strap")
            try await strap.find()
            let outcome = await strap.outcome("Connect")
            // If bluetoothd was quicker, the call succeeds and only Connected shows the end. If bluetoothd receives the
            // end before the socket's error, the error is `canceled`.
            let others = StackKind.current == .real ? ["ok", "org.bluez.Error.Failed: br-connection-canceled"] : []
            #expect((others + ["org.bluez.Error.Failed: le-connection-abort-by-local"]).contains(outcome))
            // Connected may still be true for some milliseconds.
            try await eventually { await (try? strap.isTrue("Connected")) != true }
            try await strap.findAndConnect()
        }
    }

    @Test(arguments: ["drop", "vanish"])
    func `the end of a link is one signal, and the GATT objects stay`(order: String) async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            let attributes = try await strap.attributes()
            fixture.client.removeEvents()
            try await fixture.order(order, "strap")
            let events = try await fixture.client.waitForEvents { $0.signals("Connected", false, at: strap.path) }
            let end = try #require(events.firstIndex(of: "Connected", false, at: strap.path))
            #expect(events[end].value("ServicesResolved", of: strap.path)?.bool == false)
            #expect(try await strap.attributes() == attributes)
        }
    }
}
