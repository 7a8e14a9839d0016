import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import Testing

/// A characteristic that other clients of bluetoothd use as well.
@Suite(.timeLimit(.minutes(1))) struct SharedCharacteristicTests {
    @Test func `each notification is delivered once while another client is subscribed`() async throws {
        try await Stage.run { stage in
            try await stage.subscribe(try await stage.connected())
            await stage.fake.notify([1])
            // The other client's StartNotify is answered.
            await stage.fake.makeRoundTrip()
            for octet: UInt8 in 2...9 { await stage.fake.notify([octet], copies: 2) }
            // The other client has left.
            await stage.fake.makeRoundTrip()
            for octet: UInt8 in [10, 11, 11] { await stage.fake.notify([octet]) }
            #expect(await stage.sink.values(12).map(\.first) == (1...11).map { $0 } + [11])
        }
    }

    @Test func `each notification is delivered once after another client had subscribed before`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.set(FakeBlueZ.measurement, "org.bluez.GattCharacteristic1", ["Notifying": .boolean(true)])
            try await stage.subscribe(characteristic)
            for octet: UInt8 in 1...9 { await stage.fake.notify([octet], copies: 2) }
            #expect(await stage.sink.values(9).flatMap(\.self) == Array(1...9))
        }
    }

    @Test func `the value that another client reads is not delivered as a notification`() async throws {
        try await Stage.run { stage in
            try await stage.subscribe(try await stage.connected())
            await stage.fake.notify([1])
            await stage.fake.answerReadOfOther([2])
            await stage.fake.notify([3])
            #expect(await stage.sink.values(3) == [[1], [2], [3]])
            #expect(stage.sink.reads == [[2]])
        }
    }

    @Test func `a read of another client is recognised although other signals come before its answer`() async throws {
        try await Stage.run { stage in
            try await stage.subscribe(try await stage.connected())
            await stage.fake.notify([1])
            await stage.fake.answerReadOfOther([2], signals: 2)
            await stage.fake.notify([3])
            #expect(await stage.sink.values(3) == [[1], [2], [3]])
            #expect(stage.sink.reads == [[2]])
        }
    }

    @Test func `values without proof wait for the signals that a late bluetoothd sends first`() async throws {
        try await Stage.run { stage in
            try await stage.subscribe(try await stage.connected())
            await stage.fake.notify([1])
            _ = await stage.sink.values(1)
            let pings = await stage.fake.asked.count { $0 == "Ping" }
            await stage.fake.hang("Ping")
            // Another client subscribes, and reads the value that was just notified.
            await stage.fake.makeRoundTrip()
            await stage.fake.notify([2], copies: 2)
            await stage.fake.answerReadOfOther([2])
            await stage.fake.setDevice(["RSSI": .int16(-61)])
            // The first ping shows the end of the run, the second one precedes the decision.
            await stage.fake.waitForCall("Ping", times: pings + 2)
            for octet: UInt8 in 3...5 { await stage.fake.notify([octet], copies: 2) }
            try await stage.fake.release()
            #expect(await stage.sink.values(6) == [[1], [2], [2], [3], [4], [5]])
            #expect(stage.sink.reads == [[2]])
        }
    }

    @Test func `the last value does not wait for another message`() async throws {
        try await Stage.run { stage in
            try await stage.subscribe(try await stage.connected())
            await stage.fake.notify([1])
            #expect(await stage.sink.values(1) == [[1]])
            #expect(stage.sink.reads.isEmpty)
        }
    }

    @Test func `catching up delivers everything that bluetoothd has sent`() async throws {
        try await Stage.run { stage in
            try await stage.subscribe(try await stage.connected())
            let octets = (0..<200).map { [UInt8($0)] }
            for value in octets { await stage.fake.notify(value) }
            await stage.central.catchUp(within: .seconds(20))
            #expect(stage.sink.values == octets)
        }
    }

    @Test func `catching up ends at its limit when bluetoothd does not answer`() async throws {
        try await Stage.run { stage in
            try await stage.subscribe(try await stage.connected())
            await stage.fake.hang("Ping")
            await stage.central.catchUp(within: .milliseconds(20))
            #expect(await stage.fake.asked.contains("Ping"))
        }
    }
}
