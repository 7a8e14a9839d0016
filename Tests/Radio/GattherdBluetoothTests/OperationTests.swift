import GattherdSync
import TestKit
import Testing

@testable import GattherdBluetooth

@Suite(.timeLimit(.minutes(1))) struct OperationTests {
    // MARK: - The table

    @Test func `services, characteristics and descriptors are discovered once for each link`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            #expect(strap.services.isEmpty)
            let heart = try await strap.discoverServices([0x180D])
            #expect(heart.map(\.uuid) == [0x180D])
            let measurement = try #require(heart.first?[0x2A37])
            #expect(measurement.properties == [.notify])
            #expect("\([.read, .notify] as CharacteristicProperties)" == "read, notify")
            #expect(measurement.descriptors.map(\.uuid) == [0x2901])
            let all = try await strap.discoverServices()
            #expect(all.count == 3)
            #expect(all[1].includes(all[2]) && !all[1].includes(all[0]))
            #expect(strap.services == all)
            #expect(bench.backend.asked.state.filter { $0 == "services" }.count == 1)
            try await strap.disconnect()
            #expect(strap.services.isEmpty)
        }
    }

    @Test func `the contents of services are also found by CoreBluetooth's names`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let services = try await strap.discoverServices()
            let (heart, battery) = (services[0], services[1])
            #expect(try await strap.discoverCharacteristics(for: heart) == heart.characteristics)
            #expect(try await strap.discoverCharacteristics([0x2A39], for: heart) == [heart.characteristics[1]])
            #expect(try await strap.discoverIncludedServices(for: battery) == [services[2]])
            #expect(try await strap.discoverIncludedServices([0x180D], for: battery).isEmpty)
            let descriptors = try await strap.discoverDescriptors(for: heart.characteristics[0])
            try await strap.writeValue([1], for: descriptors[0])
            #expect(try await strap.readValue(for: descriptors[0]) == [1])
            let changes = strap.serviceChanges()
            bench.backend.setServices([])
            bench.backend.say(.servicesChanged(FakeBackend.strap))
            for await _ in changes { break }
            let gone = await outcome { try await strap.discoverCharacteristics(for: heart) }
            #expect(gone.error?.kind == .unknownAttribute)
            #expect(gone.error?.operation == .discover)
        }
    }

    @Test func `changed services are published and discovered again`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let changes = strap.serviceChanges()
            try await strap.discoverServices()
            bench.backend.setServices(Array(Bench.table.prefix(1)))
            bench.backend.say(.servicesChanged(FakeBackend.strap))
            for await changed in changes {
                #expect(changed == strap)
                break
            }
            #expect(try await strap.discoverServices().count == 1)
        }
    }

    @Test func `a table that arrives after the end of its link is not kept`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let link = try strap.usableLink(.discover)
            for call in ["services", "disconnect"] { bench.backend.hang(call) }
            // The platform answers, although the operation that wanted the table has been stopped.
            async let table = strap.table(of: link)
            await bench.backend.waitUntilAsked("services")
            async let end = outcome { try await strap.disconnect() }
            await bench.backend.waitUntilAsked("disconnect 1")
            bench.backend.release("services")
            _ = try await table
            #expect(strap.services.isEmpty)
            bench.backend.release("disconnect")
            _ = await end
        }
    }

    @Test(arguments: [
        (CharacteristicID(0x2A19), "level"), (CharacteristicID(0x2A19, in: 0x180F), "level"), (0x2A37, "measurement"),
    ])
    func `a characteristic is found by its UUID`(id: CharacteristicID, handle: String) async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let found = try await strap.characteristic(id)
            #expect(found.id != id && found.uuid == id.uuid)
            guard found.properties.contains(.read) else { return }
            bench.backend.setValue(handle, [9])
            #expect(try await strap.readValue(for: found) == [9])
            #expect(try await strap.readValue(for: id) == [9])
        }
    }

    @Test func `discovered characteristics of one UUID are distinguished`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.setValue("level", [1])
            bench.backend.setValue("level2", [2])
            let levels = try await strap.discoverServices([0x180F]).compactMap { $0[0x2A19] }
            var values: [[UInt8]] = []
            for level in levels { values.append(try await strap.readValue(for: level)) }
            #expect(values == [[1], [2]])
        }
    }

    @Test func `missing and forbidden operations are not sent`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let missing = await outcome { try await strap.readValue(for: 0x2A00) }
            #expect(missing.error?.kind == .unknownAttribute)
            let unreadable = await outcome { try await strap.readValue(for: 0x2A37) }
            #expect(unreadable.error?.kind == .notSupported)
            let unwritable = await outcome {
                try await strap.write(UInt8(1), to: 0x2A37, type: .withoutResponse)
            }
            #expect(unwritable.error?.kind == .notSupported)
            let mute = await outcome {
                try await strap.notifications(of: [UInt8].self, from: CharacteristicID(0x2A19, in: 0x1234))
            }
            #expect(mute.error?.kind == .unknownAttribute)
            #expect(bench.backend.asked.state == ["connect 1", "services"])
        }
    }

    // MARK: - Values

    @Test func `values are read and written by their types`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.setValue("level", [0x34, 0x12])
            #expect(try await strap.read(UInt16.self, from: 0x2A19) == 0x1234)
            try await strap.write(Int32(-2), to: 0x2A19)
            #expect(bench.backend.value("level") == [0xFE, 0xFF, 0xFF, 0xFF])
            try await strap.write("hi", to: 0x2A19, type: .withoutResponse)
            #expect(bench.backend.value("level") == [0x68, 0x69])
            let wrong = await outcome { try await strap.read(UInt8.self, from: 0x2A19) }
            #expect(wrong.error?.kind == .invalidValue)
            #expect(wrong.error?.isTransient == false)
            #expect(wrong.error?.detail.contains("6869") == true)
            #expect(
                Array(bench.backend.asked.state.suffix(4)) == [
                    "read level", "write level", "command level", "read level",
                ]
            )
        }
    }

    @Test func `a descriptor is read and written`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let descriptor = try #require(try await strap.characteristic(0x2A37).descriptors.first)
            try await strap.write("pulse", to: descriptor)
            #expect(try await strap.read(String.self, from: descriptor) == "pulse")
        }
    }

    @Test func `lengths, strength and pairing come from the platform`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            #expect(try await strap.maximumWriteValueLength(for: .withoutResponse) == 97)
            #expect(try await strap.maximumWriteValueLength(for: .withResponse) == 512)
            #expect(try await strap.mtu() == 100)
            // BlueZ truncates longer commands, although they fit into a packet.
            bench.backend.linkMTU.set(517)
            #expect(try await strap.maximumWriteValueLength(for: .withoutResponse) == 512)
            #expect(try await strap.readRSSI() == -42)
            try await strap.pair(by: .compare)
            #expect(bench.backend.pairings == [.compare])
            try await eventually { strap.isPaired }
        }
    }

    // MARK: - Order, deadlines, cancelling

    @Test func `operations of a peripheral run one at a time, in the order of the calls`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.hang("read")
            async let first = strap.readValue(for: 0x2A19)
            await bench.backend.waitUntilAsked("read level")
            async let second: Void = strap.write(UInt8(2), to: 0x2A19, type: .withoutResponse)
            let operations = try #require(bench.central.link(strap.id)).operations
            try await eventually { operations.count == 2 }
            #expect(!strap.canSendWriteWithoutResponse)
            async let third: Void = strap.write(UInt8(1), to: 0x2A19)
            #expect(bench.backend.pending.state == 1)
            bench.backend.release("read")
            _ = try await (first, second, third)
            #expect(Array(bench.backend.asked.state.suffix(3)) == ["read level", "command level", "write level"])
            #expect(strap.canSendWriteWithoutResponse)
        }
    }

    @Test func `an operation without an answer ends at its deadline, and the next one runs`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            try await strap.discoverServices()
            bench.backend.hang("read")
            let late = await outcome {
                try await strap.readValue(for: 0x2A19, timeout: .milliseconds(10))
            }
            #expect(late.error?.kind == .timedOut)
            #expect(late.error?.operation == .read)
            #expect(late.error?.isTransient == true)
            #expect(bench.backend.pending.state == 0)
            try await strap.write(UInt8(1), to: 0x2A19)
        }
    }

    @Test func `the deadline counts from the call, also before the turn`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            try await strap.discoverServices()
            bench.backend.hang("read")
            async let first = strap.readValue(for: 0x2A19)
            await bench.backend.waitUntilAsked("read level")
            let second = await outcome {
                try await strap.write(UInt8(1), to: 0x2A19, timeout: .milliseconds(10))
            }
            #expect(second.error?.kind == .timedOut)
            #expect(!bench.backend.asked.state.contains("write level"))
            bench.backend.release("read")
            _ = try await first
        }
    }

    @Test func `a cancelled task leaves nothing pending`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.hang("read")
            let results = await withTaskGroup(of: Result<[UInt8], BluetoothError>.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        await outcome { try await strap.readValue(for: 0x2A19) }
                    }
                }
                await bench.backend.waitUntilAsked("read level")
                group.cancelAll()
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(results.map { $0.error?.kind } == [.cancelled, .cancelled, .cancelled])
            #expect(bench.backend.pending.state == 0)
            try await strap.write(UInt8(1), to: 0x2A19)
        }
    }

    @Test(arguments: [true, false])
    func `all operations are cancelled on request`(isOfCentral: Bool) async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.hang("read")
            async let first = outcome { try await strap.readValue(for: 0x2A19) }
            async let second = outcome { try await strap.readValue(for: 0x2A19) }
            await bench.backend.waitUntilAsked("read level")
            if isOfCentral { bench.central.cancelAllOperations() } else { strap.cancelAllOperations() }
            #expect(await first.error?.kind == .cancelled)
            // The second may have been called only now.
            strap.cancelAllOperations()
            bench.backend.release("read")
            _ = await second
            #expect(bench.backend.pending.state == 0)
            #expect(strap.connectionState == .ready)
        }
    }

    @Test func `the loss of a link fails waiting operations`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.hang("read")
            async let first = outcome { try await strap.readValue(for: 0x2A19) }
            await bench.backend.waitUntilAsked("read level")
            bench.backend.drop(FakeBackend.strap, .timedOut)
            #expect(await first.error?.kind == .notConnected)
        }
    }

    @Test(arguments: [true, false])
    func `an operation whose link ends before it enters the queue is not sent`(isLost: Bool) async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let link = try strap.usableLink(.read)
            bench.backend.hang("disconnect")
            if isLost { bench.backend.setConnected(strap.id, false) }
            async let end = outcome { try await strap.disconnect() }
            try await eventually { !link.isUsable }
            let isSent = LatestValue(false)
            let result = await outcome { try await link.operate(.read, within: nil) { isSent.set(true) } }
            #expect(result.error?.kind == .notConnected)
            #expect(isSent.state == false)
            bench.backend.release("disconnect")
            _ = await end
        }
    }

    @Test func `an operation that enters the queue without a link does not run on the next link`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let link = try strap.usableLink(.read)
            try await strap.disconnect()
            let mayEnd = LatestValue(false)
            async let first: Void = link.operations.perform(.write, within: nil) {
                for await mayEnd in mayEnd.watch() where mayEnd { break }
            }
            try await eventually { link.operations.count == 1 }
            async let second = outcome { try await link.operate(.read, within: nil) {} }
            try await eventually { link.operations.count == 2 }
            try await strap.connect()
            mayEnd.set(true)
            #expect(await second.error?.kind == .notConnected)
            try await first
        }
    }

    @Test func `operations are refused while the link is ended on request`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let changes = strap.connectionStateChanges()
            bench.backend.hang("disconnect")
            async let end = outcome { try await strap.disconnect() }
            await changes.wait(for: .disconnecting)
            #expect(await outcome { try await strap.readValue(for: 0x2A19) }.error?.kind == .notConnected)
            bench.backend.release("disconnect")
            _ = await end
        }
    }

    @Test func `an error of the platform is thrown with its operation`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let original = BluetoothError.Original(name: "org.bluez.Error.Failed", message: "ATT error: 0x80")
            bench.backend.fail("read", BluetoothError(.att(0x80), "0x80", original: original))
            let result = await outcome { try await strap.readValue(for: 0x2A19) }
            #expect(result.error?.kind == .att(0x80))
            #expect(result.error?.original == original)
            #expect(result.error?.operation == .read)
            #expect(result.error?.description == "read 2a19 of \(strap.address): 0x80")
        }
    }
}
