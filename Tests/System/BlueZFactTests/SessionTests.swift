import BlueZKit
import TestKit
import Testing

/// The lifetime of a client's subscription.
@Suite(.timeLimit(.minutes(10)), .serialized) struct SessionTests {
    @Test func `a StartNotify session outlives the link, and bluetoothd enables it again`() async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            let rate = try await strap.characteristic("2a37")
            try await rate.call("StartNotify")
            #expect(try await fixture.count("subscribe", "strap", "2a37") == 1)
            try await fixture.order("drop", "strap")
            try await strap.waitForEnd()
            #expect(try await rate.isTrue("Notifying"), "also without a link")
            try await strap.connect()
            try await eventually { try await fixture.count("subscribe", "strap", "2a37") == 2 }
            fixture.client.removeEvents()
            try await fixture.order("burst", "strap", "1")
            try await fixture.client.waitForEvents { !$0.octets(of: rate.path).isEmpty }
        }
    }

    @Test(arguments: [true, false])
    func `after StopNotify, connected or not, the next link is silent`(isConnected: Bool) async throws {
        try await BlueZFixture.run(.strap("strap", "rate: 0, battery: 50")) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            let rate = try await strap.characteristic("2a37")
            try await rate.call("StartNotify")
            if isConnected { try await rate.call("StopNotify") }
            try await fixture.order("drop", "strap")
            try await strap.waitForEnd()
            if !isConnected { try await rate.call("StopNotify") }
            try await fixture.expectSilence(of: strap)
            #expect(try await !rate.isTrue("Notifying"))
        }
    }

    @Test func `a socket's subscription ends with the link`() async throws {
        try await BlueZFixture.run(.strap("strap", "rate: 0, battery: 50")) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            let rate = try await strap.characteristic("2a37")
            let socket = try await rate.acquire()
            try await fixture.order("drop", "strap")
            try await strap.waitForEnd()
            // The two events reach bluetoothd through different sockets.
            try await eventually { try await !rate.isTrue("NotifyAcquired") }
            try await fixture.expectSilence(of: strap)
            socket.close()
        }
    }

    @Test func `StartNotify without a link takes effect at the next one`() async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            let rate = try await strap.characteristic("2a37")
            try await fixture.order("drop", "strap")
            try await strap.waitForEnd()
            try await rate.call("StartNotify")
            #expect(try await fixture.count("subscribe", "strap", "2a37") == 0)
            try await strap.connect()
            try await eventually { try await fixture.count("subscribe", "strap", "2a37") == 1 }
            try await eventually { try await rate.isTrue("Notifying") }
        }
    }

    @Test func `notifications are disabled when their last client stops or leaves`() async throws {
        try await BlueZFixture.run(.strap("strap", "rate: 0, battery: 50")) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            let rate = try await strap.characteristic("2a37")
            let other = try await fixture.anotherClient()
            try await rate.call("StartNotify")
            try await rate.through(other).call("StartNotify")
            try await rate.call("StopNotify")
            _ = try await strap.characteristic("2a19").read()
            #expect(try await fixture.count("unsubscribe", "strap", "2a37") == 0)
            await other.leave()
            try await eventually { try await fixture.count("unsubscribe", "strap", "2a37") == 1 }
        }
    }

    @Test func `closing a socket disables the notifications`() async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            let rate = try await strap.characteristic("2a37")
            let socket = try await rate.acquire()
            socket.close()
            try await eventually { try await fixture.count("unsubscribe", "strap", "2a37") == 1 }
            #expect(try await !rate.isTrue("NotifyAcquired"))
        }
    }
}

extension BlueZFixture {
    /// Connects again and expects no subscription.
    ///
    /// bluetoothd would subscribe before it answers a read that was sent once the services were known.
    func expectSilence(of strap: BlueZObject) async throws {
        let before = try await count("subscribe", "strap", "2a37")
        try await strap.connect()
        _ = try await strap.characteristic("2a19").read()
        #expect(try await count("subscribe", "strap", "2a37") == before)
    }
}
