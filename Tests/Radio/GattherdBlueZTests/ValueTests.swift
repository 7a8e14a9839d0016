import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdModel
import Testing

@Suite(.timeLimit(.minutes(3))) struct ValueTests {
    // MARK: - Reads and writes

    @Test(arguments: ["ReadValue", "WriteValue", "StartNotify"])
    func `an operation on an attribute has a limit of its own`(member: String) async throws {
        var limits = BlueZCentral.Limits()
        (limits.operation, limits.attribute) = (.milliseconds(20), .seconds(50))
        try await Stage.run(limits: limits) { stage in
            let characteristic = try await stage.connected(member == "WriteValue" ? Stage.control : Stage.measurement)
            for hanging in [member, "StartDiscovery"] { await stage.fake.hang(hanging) }
            let (central, sink) = (stage.central, stage.sink)
            async let result = outcome { () throws(BluetoothError) in
                switch member {
                case "ReadValue": _ = try await central.read(characteristic)
                case "WriteValue": try await central.write([1], to: characteristic, withResponse: true)
                default:
                    try await central.subscribe(
                        to: characteristic,
                        by: .signals,
                        token: SubscriptionToken(9),
                        sink: sink
                    )
                }
            }
            await stage.fake.waitForCall(member)
            // A later call with the other limit has ended, so that limit has passed.
            let other = await outcome { () throws(BluetoothError) in
                try await central.startDiscovery(on: Stage.adapter)
            }
            #expect(other.kind == .timedOut)
            try await stage.fake.release(.bytes([7]))
            #expect(await result.kind == nil)
        }
    }

    @Test func `a read returns the characteristic's value`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            #expect(try await stage.central.read(characteristic) == [1, 2, 3])
        }
    }

    @Test(arguments: [
        ("Failed", "Not connected", BluetoothError.Kind.notConnected), ("NotPermitted", "Not paired", .authentication),
        ("Failed", "Operation failed with ATT error: 0x80", .att(0x80)), ("InProgress", "In Progress", .busy),
    ])
    func `a failed read has the reason`(name: String, text: String, kind: BluetoothError.Kind) async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.fail("ReadValue", name, text)
            let central = stage.central
            let result = await outcome { () throws(BluetoothError) in try await central.read(characteristic) }
            #expect(result.kind == kind)
        }
    }

    @Test func `a read that is never answered ends at its deadline`() async throws {
        var limits = BlueZCentral.Limits()
        limits.attribute = .milliseconds(50)
        try await Stage.run(limits: limits) { stage in
            let characteristic = try await stage.connected()
            await stage.fake.hang("ReadValue")
            let central = stage.central
            let result = await outcome { () throws(BluetoothError) in try await central.read(characteristic) }
            #expect(result.kind == .timedOut)
        }
    }

    @Test(arguments: [(true, "request"), (false, "command")])
    func `a value is written with the requested type of write`(withResponse: Bool, type: String) async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected(Stage.control)
            try await stage.central.write([7, 8], to: characteristic, withResponse: withResponse)
            let arguments = await stage.fake.arguments["WriteValue"]
            #expect(arguments?.first == .bytes([7, 8]))
            #expect(arguments?.last?["type"] == .string(type))
        }
    }

    @Test func `a command that BlueZ would lose is refused`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected(Stage.control)
            let central = stage.central
            let result = await outcome { () throws(BluetoothError) in
                try await central.write(Array(repeating: 0, count: 21), to: characteristic, withResponse: false)
            }
            #expect(result.kind == .invalidLength)
            try await central.write(Array(repeating: 0, count: 21), to: characteristic, withResponse: true)
            try await central.write(Array(repeating: 0, count: 20), to: characteristic, withResponse: false)
        }
    }

    // MARK: - Signals

    @Test func `notifications come in order, equal ones too, also before the answer`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.on("StartNotify") { fake, call in
                fake.notify([0])
                try call.reply()
            }
            try await stage.subscribe(characteristic)
            for octet: UInt8 in [1, 1, 2, 2, 1] { await stage.fake.notify([octet]) }
            await stage.fake.notify([])
            #expect(await stage.sink.values(7) == [[0], [1], [1], [2], [2], [1], []])
            await stage.sink.waitForFlush(at: 7)
        }
    }

    @Test func `values without a subscription are ignored`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.notify([1])
            _ = try await stage.central.read(characteristic)
            try await stage.subscribe(characteristic)
            await stage.fake.notify([2], at: FakeBlueZ.control)
            await stage.fake.notify([3])
            #expect(await stage.sink.values(1) == [[3]])
            try await stage.central.unsubscribe(SubscriptionToken(1))
            await stage.fake.notify([4])
            _ = try await stage.central.read(characteristic)
            #expect(stage.sink.values == [[3]])
            #expect(await stage.fake.asked.contains("StopNotify"))
        }
    }

    @Test func `values before the answer to StopNotify are delivered`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            try await stage.subscribe(characteristic)
            await stage.fake.on("StopNotify") { fake, call in
                fake.notify([1])
                try call.reply()
            }
            try await stage.central.unsubscribe(SubscriptionToken(1))
            #expect(stage.sink.values == [[1]])
        }
    }

    @Test func `a subscriber during another one's StopNotify receives all later values`()
        async throws
    {
        try await Stage.run { stage in
            let (characteristic, second) = (try await stage.connected(), RecordingSink())
            try await stage.subscribe(characteristic)
            await stage.fake.hang("StopNotify")
            async let ending: Void = stage.central.unsubscribe(SubscriptionToken(1))
            await stage.fake.waitForCall("StopNotify")
            await stage.fake.on("StartNotify") { fake, call in
                let interface = "org.bluez.GattCharacteristic1"
                fake.set(FakeBlueZ.measurement, interface, ["Notifying": .boolean(false)])
                try fake.release()
                fake.set(FakeBlueZ.measurement, interface, ["Notifying": .boolean(true)])
                try call.reply()
            }
            let token = SubscriptionToken(2)
            try await stage.central.subscribe(to: characteristic, by: .signals, token: token, sink: second)
            try await ending
            await stage.fake.notify([1])
            #expect(await second.values(1) == [[1]])
            #expect(stage.sink.values.isEmpty)
            #expect(await stage.fake.asked.count { $0 == "StartNotify" } == 2)
        }
    }

    @Test func `the end of a session that was given up does not end the next subscription`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.hang("StartNotify")
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await stage.subscribe(characteristic) }
                await stage.fake.waitForCall("StartNotify")
                group.cancelAll()
            }
            await stage.fake.waitForCall("StopNotify")
            await stage.fake.on("StartNotify") { fake, call in
                let interface = "org.bluez.GattCharacteristic1"
                fake.set(FakeBlueZ.measurement, interface, ["Notifying": .boolean(false)])
                fake.set(FakeBlueZ.measurement, interface, ["Notifying": .boolean(true)])
                try call.reply()
            }
            try await stage.subscribe(characteristic)
            await stage.fake.notify([1])
            #expect(await stage.sink.values(1) == [[1]])
        }
    }

    @Test func `a subscription that the program ended is not reported as ended`() async throws {
        try await Stage.run { stage in
            try await stage.subscribe(try await stage.connected())
            await stage.fake.on("StopNotify") { fake, call in
                let interface = "org.bluez.GattCharacteristic1"
                fake.set(FakeBlueZ.measurement, interface, ["Notifying": .boolean(false)])
                try call.reply()
            }
            try await stage.central.unsubscribe(SubscriptionToken(1))
            await stage.fake.setConnected(false)
            let event = try await stage.events.next { event in
                switch event {
                case .subscriptionEnded, .disconnected: true
                default: false
                }
            }
            #expect(event == .disconnected(Stage.peripheral))
        }
    }

    @Test func `a notify session that outlived the last link counts as success`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.fail("StartNotify", "InProgress", "In Progress")
            try await stage.subscribe(characteristic)
            await stage.fake.notify([1])
            #expect(await stage.sink.values(1) == [[1]])
        }
    }

    @Test func `a refused subscription ends`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.fail("StartNotify", "NotSupported", "Operation is not supported")
            let result = await outcome { () throws(BluetoothError) in
                try await stage.central.subscribe(
                    to: characteristic,
                    by: .signals,
                    token: SubscriptionToken(1),
                    sink: stage.sink
                )
            }
            #expect(result.kind == .notSupported)
            await stage.fake.notify([1])
            try await stage.central.unsubscribe(SubscriptionToken(1))
            #expect(stage.sink.values.isEmpty)
            #expect(await !stage.fake.asked.contains("StopNotify"))
        }
    }

    @Test func `a subscription cancelled before its answer is stopped`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.hang("StartNotify")
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await stage.subscribe(characteristic) }
                await stage.fake.waitForCall("StartNotify")
                group.cancelAll()
            }
            await stage.fake.waitForCall("StopNotify")
        }
    }

    @Test func `a subscription that a cancelled task ends is stopped`() async throws {
        try await Stage.run { stage in
            try await stage.subscribe(try await stage.connected())
            await withTaskGroup(of: Void.self) { group in
                group.cancelAll()
                group.addTask { try? await stage.central.unsubscribe(SubscriptionToken(1)) }
            }
            await stage.fake.waitForCall("StopNotify")
        }
    }

    @Test func `two subscribers of one characteristic receive every value`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            let second = RecordingSink()
            try await stage.subscribe(characteristic)
            let token = SubscriptionToken(2)
            try await stage.central.subscribe(to: characteristic, by: .signals, token: token, sink: second)
            await stage.fake.notify([1])
            #expect(await stage.sink.values(1) == [[1]])
            #expect(await second.values(1) == [[1]])
            try await stage.central.unsubscribe(SubscriptionToken(1))
            #expect(await !stage.fake.asked.contains("StopNotify"))
            await stage.fake.notify([2])
            #expect(await second.values(2) == [[1], [2]])
        }
    }

    @Test func `the end of a link ends its subscriptions, in BlueZ too`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            try await stage.subscribe(characteristic)
            await stage.fake.setConnected(false)
            try await stage.events.expect(.disconnected(Stage.peripheral))
            await stage.fake.waitForCall("StopNotify")
            await stage.fake.notify([1])
            await stage.fake.setConnected(true)
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.isConnected } else { false }
            }
            #expect(stage.sink.values.isEmpty)
            try await stage.central.unsubscribe(SubscriptionToken(1))
            #expect(await stage.fake.asked.count { $0 == "StopNotify" } == 1)
        }
    }

    @Test func `a subscription that BlueZ ends, or whose object is removed, is published`() async throws {
        try await Stage.run { stage in
            var characteristic = try await stage.connected()
            try await stage.subscribe(characteristic)
            let interface = "org.bluez.GattCharacteristic1"
            await stage.fake.set(FakeBlueZ.measurement, interface, ["Notifying": .boolean(false)])
            try await stage.events.expect(.subscriptionEnded(SubscriptionToken(1), Stage.peripheral))
            characteristic = try await stage.connected()
            try await stage.subscribe(characteristic)
            await stage.fake.remove(FakeBlueZ.measurement)
            try await stage.events.expect(.subscriptionEnded(SubscriptionToken(1), Stage.peripheral))
        }
    }

    @Test func `a value and other changes in one signal are both handled`() async throws {
        try await Stage.run { stage in
            try await stage.subscribe(try await stage.connected())
            let changes: FakeBlueZ.Properties = ["Value": .bytes([1]), "Notifying": .boolean(false)]
            await stage.fake.set(FakeBlueZ.measurement, "org.bluez.GattCharacteristic1", changes)
            try await stage.events.expect(.subscriptionEnded(SubscriptionToken(1), Stage.peripheral))
            #expect(stage.sink.values == [[1]])
        }
    }

    // MARK: - The echo of a read

    @Test func `the echo of our own read is not a notification`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            try await stage.subscribe(characteristic)
            #expect(try await stage.central.read(characteristic) == [1, 2, 3])
            await stage.fake.notify([9])
            #expect(await stage.sink.values(1) == [[9]])
        }
    }

    @Test func `the late echo of a read that was given up is not a notification`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            try await stage.subscribe(characteristic)
            await stage.fake.hang("ReadValue")
            await withTaskGroup(of: Void.self) { group in
                group.addTask { _ = try? await stage.central.read(characteristic) }
                await stage.fake.waitForCall("ReadValue")
                group.cancelAll()
            }
            await stage.fake.notify([5])
            try await stage.fake.answerHeldReads([7])
            for value in [8, 9] as [UInt8] { await stage.fake.notify([value]) }
            #expect(await stage.sink.values(3) == [[5], [8], [9]])
            #expect(stage.sink.reads == [])
        }
    }

    @Test func `the echo of our own read is recognised although another signal comes before the answer`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            try await stage.subscribe(characteristic)
            await stage.fake.on("ReadValue") { fake, call in
                fake.notify([7])
                fake.setDevice(["RSSI": .int16(-70)])
                try call.reply(.bytes([7]))
            }
            #expect(try await stage.central.read(characteristic) == [7])
            await stage.fake.notify([9])
            #expect(await stage.sink.values(1) == [[9]])
        }
    }

    @Test func `notifications during a read are delivered, in order, equal ones too`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            try await stage.subscribe(characteristic)
            await stage.fake.on("ReadValue") { fake, call in
                fake.notify([5])
                fake.notify([7])
                try fake.readValue([7], call)
                fake.notify([7])
                fake.notify([8])
            }
            #expect(try await stage.central.read(characteristic) == [7])
            #expect(await stage.sink.values(4) == [[5], [7], [7], [8]])
        }
    }

    @Test func `a notification during a read that fails or has no echo is delivered`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            try await stage.subscribe(characteristic)
            await stage.fake.on("ReadValue") { fake, call in
                fake.notify([5])
                try call.fail(DBusError(name: "org.bluez.Error.Failed", message: "Operation failed"))
            }
            _ = try? await stage.central.read(characteristic)
            await stage.fake.on("ReadValue") { fake, call in
                fake.notify([6])
                try call.reply(.bytes([7]))
            }
            _ = try await stage.central.read(characteristic)
            #expect(await stage.sink.values(2) == [[5], [6]])
        }
    }
}
