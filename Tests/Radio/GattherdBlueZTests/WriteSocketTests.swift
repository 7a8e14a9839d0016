import GattherdBluetooth
import GattherdDBus
import GattherdSync
import Testing

@testable import GattherdBlueZ

@Suite(.timeLimit(.minutes(3))) struct WriteSocketTests {
    /// A central that is connected and whose write commands go by the socket.
    private func acquired(_ stage: Stage) async throws -> (RemoteCharacteristic, SocketPair) {
        let characteristic = try await stage.connected(Stage.control)
        let pair = SocketPair()
        await stage.fake.on("AcquireWrite") { _, call in try pair.answer(call) }
        return (characteristic, pair)
    }

    @Test func `commands come in order and none is lost, however slowly they are read`() async throws {
        try await Stage.run { stage in
            let (characteristic, pair) = try await acquired(stage)
            let commands = (0..<1000).map { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
            let central = stage.central
            async let writing = outcome { () throws(BluetoothError) in
                for octets in commands { try await central.writeWithoutResponse(octets, to: characteristic) }
            }
            // Not on a thread of the cooperative pool, which may have no other one.
            let reader = EventLoop(name: "reader")
            let received: [[UInt8]] = await withCheckedContinuation { received in
                reader.execute { received.resume(returning: commands.map { _ in pair.receive() }) }
            }
            reader.stop()
            #expect(received == commands)
            #expect(await writing.kind == nil)
            #expect(await stage.fake.asked.filter { $0 == "AcquireWrite" }.count == 1)
        }
    }

    @Test func `a full socket accepts more when there is room again`() async throws {
        let loop = EventLoop(name: "test")
        let pair = SocketPair()
        let (outcomes, outcome) = AsyncStream.makeStream(of: WriteSocket.Outcome?.self)
        loop.execute {
            var socket: WriteSocket?
            socket = try? WriteSocket(pair.makeDescriptor(), on: loop) {
                outcome.yield(socket?.send([2]))
                socket?.close()
                outcome.yield(socket?.send([3]))
                outcome.finish()
                socket = nil
            }
            while socket?.send([1]) == .sent { outcome.yield(.sent) }
            outcome.yield(socket?.send([1]))
        }
        var seen: [WriteSocket.Outcome?] = []
        for await outcome in outcomes {
            seen.append(outcome)
            guard outcome == .full else { continue }
            // Linux reports room when most of the buffer is free.
            #expect(seen.dropLast().allSatisfy { _ in pair.receive() == [1] })
        }
        #expect(seen.drop { $0 == .sent } == [.full, .sent, .closed])
        #expect(pair.receive() == [2])
        loop.stop()
    }

    @Test(arguments: ["NotSupported", "NotPermitted", "unknown"])
    func `commands without a socket are sent by calls`(refusal: String) async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected(Stage.control)
            await stage.fake.on("AcquireWrite") { _, call in
                switch refusal {
                case "NotSupported":
                    try call.fail(
                        DBusError(name: "org.bluez.Error.NotSupported", message: "Operation is not supported")
                    )
                case "NotPermitted":
                    try call.fail(DBusError(name: "org.bluez.Error.NotPermitted", message: "Write acquired"))
                default: try call.failUnknownMethod()
                }
            }
            for octet in 0..<3 as Range<UInt8> {
                try await stage.central.writeWithoutResponse([octet], to: characteristic)
                #expect(await stage.fake.arguments["WriteValue"]?.first == .bytes([octet]))
            }
            #expect(await stage.fake.arguments["WriteValue"]?.last?["type"] == .string("command"))
            #expect(await stage.fake.asked.filter { $0 == "AcquireWrite" }.count == 1)
        }
    }

    @Test func `a write request after commands closes the socket first`() async throws {
        try await Stage.run { stage in
            let (characteristic, pair) = try await acquired(stage)
            try await stage.central.writeWithoutResponse([1], to: characteristic)
            #expect(pair.receive() == [1])
            try await stage.central.write([2], to: characteristic, withResponse: true)
            #expect(pair.receive() == [])
            #expect(await stage.fake.asked.suffix(2) == ["Introspect", "WriteValue"])
        }
    }

    @Test func `a command that is longer than a value is refused, although it fits into a packet`() async throws {
        try await Stage.run { stage in
            let (characteristic, pair) = try await acquired(stage)
            await stage.fake.set(FakeBlueZ.control, "org.bluez.GattCharacteristic1", ["MTU": .uint16(517)])
            // The signal has arrived with the answer.
            try await stage.central.stopDiscovery(on: Stage.adapter)
            let central = stage.central
            let long = await outcome { () throws(BluetoothError) in
                try await central.writeWithoutResponse(Array(repeating: 0, count: 513), to: characteristic)
            }
            #expect(long.kind == .invalidLength)
            try await central.writeWithoutResponse(Array(repeating: 1, count: 512), to: characteristic)
            #expect(pair.receive() == Array(repeating: 1, count: 512))
        }
    }

    @Test func `the socket ends with the link, and a long command is refused`() async throws {
        try await Stage.run { stage in
            let (characteristic, pair) = try await acquired(stage)
            let central = stage.central
            try await central.writeWithoutResponse([1], to: characteristic)
            let long = await outcome { () throws(BluetoothError) in
                try await central.writeWithoutResponse(Array(repeating: 0, count: 21), to: characteristic)
            }
            #expect(long.kind == .invalidLength)
            #expect(pair.receive() == [1])
            await stage.fake.setConnected(false)
            try await stage.events.expect(.disconnected(Stage.peripheral))
            #expect(pair.receive() == [])
        }
    }
}
