import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdSync
import Testing

@Suite(.timeLimit(.minutes(3))) struct LinkTests {
    private static let id = Stage.peripheral

    // MARK: - Discovery

    @Test func `discovery filters by Low Energy, without duplicates`() async throws {
        try await Stage.run { stage in
            try await stage.central.startDiscovery(on: Stage.adapter)
            let filter = await stage.fake.arguments["SetDiscoveryFilter"]?.first
            #expect(filter?["Transport"] == .string("le"))
            #expect(filter?["DuplicateData"] == .boolean(false))
            #expect(filter?["UUIDs"] == nil)
            #expect(await stage.fake.asked.suffix(2) == ["SetDiscoveryFilter", "StartDiscovery"])
        }
    }

    @Test func `starting a running discovery, or one without filters, succeeds`() async throws {
        try await Stage.run { stage in
            await stage.fake.fail("SetDiscoveryFilter", "NotSupported", "Operation is not supported")
            try await stage.central.startDiscovery(on: Stage.adapter)
            await refuseDiscovery(stage)
            try await stage.central.startDiscovery(on: Stage.adapter)
            #expect(await stage.fake.asked.filter { $0 == "StartDiscovery" }.count == 2)
        }
    }

    /// Lets BlueZ refuse to start a scan while one is running.
    private func refuseDiscovery(_ stage: Stage) async {
        await stage.fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Discovering": .boolean(true)])
        await stage.fake.fail("StartDiscovery", "InProgress", "Operation already in progress")
    }

    private func startDiscovery(_ stage: Stage) async -> BluetoothError.Kind? {
        let central = stage.central
        return await outcome { () throws(BluetoothError) in
            try await central.startDiscovery(on: Stage.adapter)
        }.kind
    }

    @Test func `an InProgress error is an error while only another program scans`() async throws {
        try await Stage.run { stage in
            await refuseDiscovery(stage)
            #expect(await startDiscovery(stage) == .busy)
        }
    }

    @Test(arguments: [true, false])
    func `our scan ends when it is stopped or the adapter is switched off`(isStopped: Bool) async throws {
        try await Stage.run { stage in
            #expect(await startDiscovery(stage) == nil)
            if isStopped {
                try await stage.central.stopDiscovery(on: Stage.adapter)
            } else {
                for isOn in [false, true] {
                    await stage.fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .boolean(isOn)])
                }
            }
            await refuseDiscovery(stage)
            #expect(await startDiscovery(stage) == .busy)
        }
    }

    @Test func `an InProgress error of an idle adapter is an error`() async throws {
        try await Stage.run { stage in
            await stage.fake.fail("StartDiscovery", "InProgress", "Operation already in progress")
            let central = stage.central
            let refused = await outcome { () throws(BluetoothError) in
                try await central.startDiscovery(on: Stage.adapter)
            }
            #expect(refused.kind == .busy)
        }
    }

    @Test func `stopping a discovery that was not started succeeds`() async throws {
        try await Stage.run { stage in
            await stage.fake.fail("StopDiscovery", "Failed", "No discovery started")
            try await stage.central.stopDiscovery(on: Stage.adapter)
            await stage.fake.fail("StopDiscovery", "NotReady", "Resource Not Ready")
            try await stage.central.stopDiscovery(on: Stage.adapter)
        }
    }

    @Test func `an adapter that is off or not there is unavailable`() async throws {
        try await Stage.run { stage in
            await stage.fake.fail("StartDiscovery", "NotReady", "Resource Not Ready")
            let central = stage.central
            let off = await outcome { () throws(BluetoothError) in
                try await central.startDiscovery(on: Stage.adapter)
            }
            let absent = await outcome { () throws(BluetoothError) in
                try await central.startDiscovery(on: Self.id.address)
            }
            #expect(off.kind == .adapterUnavailable)
            #expect(absent.kind == .adapterUnavailable)
        }
    }

    // MARK: - Connecting

    private func connect(_ stage: Stage, _ timeout: Duration = .seconds(20)) async -> Result<Void, BluetoothError> {
        let central = stage.central
        return await outcome { () throws(BluetoothError) in try await central.connect(Self.id, timeout: timeout) }
    }

    @Test func `connecting and disconnecting are published`() async throws {
        try await Stage.run { stage in
            try await stage.central.connect(Self.id, timeout: .seconds(20))
            let table = try await stage.central.characteristics(of: Self.id, timeout: .seconds(20))
            #expect(table.map(\.uuid) == [Stage.measurement, Stage.control])
            try await stage.central.disconnect(Self.id)
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.isConnected } else { false }
            }
            try await stage.events.expect(.disconnected(Self.id))
        }
    }

    @Test func `a link without a signal is found by reading the properties`() async throws {
        try await Stage.run { stage in
            await stage.fake.on("Connect") { fake, call in
                fake.setSilently(FakeBlueZ.device, "org.bluez.Device1", "Connected", .boolean(true))
                try call.reply()
            }
            try await stage.central.connect(Self.id, timeout: .seconds(20))
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.isConnected } else { false }
            }
        }
    }

    @Test(arguments: ["UnknownMethod", "UnknownInterface"])
    func `the answer to Connect suffices for an implementation without properties`(name: String) async throws {
        try await Stage.run { stage in
            await stage.fake.on("Connect") { _, call in try call.reply() }
            await stage.fake.on("GetAll") { _, call in
                try call.fail(DBusError(name: "org.freedesktop.DBus.Error." + name, message: ""))
            }
            #expect(await connect(stage).kind == nil)
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.isConnected } else { false }
            }
        }
    }

    @Test func `connecting waits for the link after the answer`() async throws {
        try await Stage.run { stage in
            await stage.fake.on("Connect") { _, call in try call.reply() }
            async let connecting = connect(stage)
            await stage.fake.waitForCall("GetAll")
            await stage.fake.setDevice(["Connected": .boolean(true)])
            #expect(await connecting.kind == nil)
        }
    }

    @Test func `an answer without a link is cancelled at the deadline`() async throws {
        try await Stage.run { stage in
            await stage.fake.on("Connect") { _, call in try call.reply() }
            #expect(await connect(stage, .milliseconds(50)).kind == .timedOut)
            #expect(await stage.fake.asked.last == "Disconnect")
        }
    }

    @Test func `a link that ends before the answer to Connect is not made again by BlueZ alone`() async throws {
        try await Stage.run { stage in
            await stage.fake.on("Connect") { fake, call in
                fake.setDevice(["Connected": .boolean(true)])
                fake.setDevice(["Connected": .boolean(false)])
                try call.reply()
            }
            #expect(await connect(stage).kind == .notConnected)
            // BlueZ 5.66 goes on by itself.
            await stage.fake.waitForCall("Disconnect")
        }
    }

    @Test func `an attempt without an answer is cancelled at the deadline`() async throws {
        try await Stage.run { stage in
            await stage.fake.hang("Connect")
            #expect(await connect(stage, .milliseconds(20)).kind == .timedOut)
            #expect(await stage.fake.asked.suffix(2) == ["Connect", "Disconnect"])
            try await stage.fake.release()
            #expect(await connect(stage, .milliseconds(20)).kind == .timedOut)
        }
    }

    @Test func `an attempt ends at its deadline although a hanging bluetoothd does not cancel it`() async throws {
        var limits = BlueZCentral.Limits()
        limits.operation = .seconds(600)
        try await Stage.run(limits: limits) { stage in
            for member in ["Connect", "Disconnect"] { await stage.fake.hang(member) }
            #expect(await connect(stage, .milliseconds(20)).kind == .timedOut)
            #expect(await stage.fake.asked.contains("Disconnect"))
        }
    }

    @Test func `the cancellation of its task ends an attempt`() async throws {
        try await Stage.run { stage in
            await stage.fake.hang("Connect")
            let central = stage.central
            let kind = await withTaskGroup(of: BluetoothError.Kind?.self) { group in
                group.addTask {
                    await outcome { () throws(BluetoothError) in
                        try await central.connect(Self.id, timeout: .seconds(50))
                    }.kind
                }
                await stage.fake.waitForCall("Connect")
                group.cancelAll()
                return await group.next() ?? nil
            }
            #expect(kind == .cancelled)
            await stage.fake.waitForCall("Disconnect")
        }
    }

    @Test func `an attempt begins as soon as bluetoothd has cancelled a late one`() async throws {
        try await Stage.run { stage in
            await stage.fake.hang("Connect")
            #expect(await connect(stage, .milliseconds(20)).kind == .timedOut)
            async let next = connect(stage)
            await stage.fake.waitForCall("Connect", times: 2)
            await stage.fake.setDevice(["Connected": .boolean(true)])
            try await stage.fake.release()
            #expect(await next.kind == nil)
        }
    }

    @Test func `an attempt waits until bluetoothd has ended the link of a cancelled one`() async throws {
        var limits = BlueZCentral.Limits()
        limits.operation = .seconds(600)
        try await Stage.run(limits: limits) { stage in
            await stage.fake.on("Connect") { fake, _ in fake.setDevice(["Connected": .boolean(true)]) }
            await stage.fake.hang("Disconnect")
            let attempt = Task { await connect(stage).kind }
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.isConnected } else { false }
            }
            attempt.cancel()
            #expect(await attempt.value == .cancelled)
            #expect(await connect(stage, .milliseconds(50)).kind == .timedOut)
            #expect(await stage.fake.asked.count { $0 == "Connect" } == 1)
            await stage.fake.on("Connect") { fake, call in
                fake.setConnected(true)
                try call.reply()
            }
            await stage.fake.setConnected(false)
            try await stage.events.expect(.disconnected(Self.id))
            #expect(await connect(stage).kind == nil)
        }
    }

    @Test func `an attempt does not wait for a cancellation whose peripheral was removed`() async throws {
        var limits = BlueZCentral.Limits()
        limits.operation = .seconds(600)
        try await Stage.run(limits: limits) { stage in
            for member in ["Connect", "Disconnect"] { await stage.fake.hang(member) }
            let attempt = Task { await connect(stage).kind }
            await stage.fake.waitForCall("Connect")
            attempt.cancel()
            #expect(await attempt.value == .cancelled)
            await stage.fake.waitForCall("Disconnect")
            await stage.fake.remove(FakeBlueZ.device)
            try await stage.events.expect(.peripheralRemoved(Self.id))
            #expect(await connect(stage, .milliseconds(50)).kind == .unknownPeripheral)
        }
    }

    @Test(arguments: [
        ("Failed", "le-connection-abort-by-local", BluetoothError.Kind.connectionFailed),
        ("Failed", "Operation already in progress", .busy), ("InProgress", "In Progress", .busy),
        ("Failed", "br-connection-canceled", .cancelled), ("NotReady", "", .adapterUnavailable),
    ])
    func `a failed connect has the reason`(name: String, text: String, kind: BluetoothError.Kind) async throws {
        try await Stage.run { stage in
            await stage.fake.fail("Connect", name, text)
            #expect(await connect(stage).kind == kind)
        }
    }

    @Test func `connecting a connected peripheral succeeds`() async throws {
        try await Stage.run { stage in
            await stage.fake.setDevice(["Connected": .boolean(true)])
            await stage.fake.fail("Connect", "AlreadyConnected", "Already Connected")
            #expect(await connect(stage).kind == nil)
        }
    }

    @Test func `a failure of classic Bluetooth does not concern a link that is up`() async throws {
        try await Stage.run { stage in
            await stage.fake.setDevice(["Connected": .boolean(true)])
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.isConnected } else { false }
            }
            await stage.fake.fail("Connect", "Failed", "br-connection-page-timeout")
            #expect(await connect(stage).kind == nil)
            await stage.fake.on("Connect") { fake, call in
                fake.setDevice(["Connected": .boolean(false)])
                try call.fail(DBusError(name: "org.bluez.Error.Failed", message: "le-connection-abort-by-local"))
            }
            #expect(await connect(stage).kind == .connectionFailed)
        }
    }

    @Test func `a failed connect reports that the adapter is off`() async throws {
        try await Stage.run { stage in
            await stage.fake.on("Connect") { fake, call in
                fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .boolean(false)])
                try call.fail(DBusError(name: "org.bluez.Error.Failed", message: "Input/output error"))
            }
            #expect(await connect(stage).kind == .adapterUnavailable)
        }
    }

    @Test func `a peripheral that was removed is unknown`() async throws {
        try await Stage.run { stage in
            await stage.fake.on("Connect") { fake, call in
                fake.remove(FakeBlueZ.device)
                try call.reply()
            }
            #expect(await connect(stage).kind == .unknownPeripheral)
            #expect(await connect(stage).kind == .unknownPeripheral)
            #expect(await stage.fake.asked.filter { $0 == "Connect" }.count == 1)
        }
    }

    @Test func `an attempt whose peripheral is removed ends, although bluetoothd does not answer`() async throws {
        try await Stage.run { stage in
            await stage.fake.hang("Connect")
            async let attempt = connect(stage, .seconds(3600))
            await stage.fake.waitForCall("Connect")
            await stage.fake.remove(FakeBlueZ.device)
            #expect(await attempt.kind == .unknownPeripheral)
        }
    }

    @Test func `an attempt whose peripheral is removed has the reason that bluetoothd answers`() async throws {
        var limits = BlueZCentral.Limits()
        limits.removal = .seconds(3600)
        try await Stage.run(limits: limits) { stage in
            await stage.fake.on("Connect") { fake, call in
                fake.remove(FakeBlueZ.device)
                try call.fail(DBusError(name: "org.bluez.Error.Failed", message: "le-connection-abort-by-local"))
            }
            #expect(await connect(stage).kind == .connectionFailed)
        }
    }

    // MARK: - Disconnecting and forgetting

    @Test func `a disconnect whose peripheral is removed ends, although bluetoothd does not answer`() async throws {
        var limits = BlueZCentral.Limits()
        limits.operation = .seconds(3600)
        try await Stage.run(limits: limits) { stage in
            await stage.fake.hang("Disconnect")
            async let end: Void = stage.central.disconnect(Self.id)
            await stage.fake.waitForCall("Disconnect")
            await stage.fake.remove(FakeBlueZ.device)
            try await end
        }
    }

    @Test func `disconnecting an unconnected or unknown peripheral succeeds`() async throws {
        try await Stage.run { stage in
            await stage.fake.fail("Disconnect", "NotConnected", "Not Connected")
            try await stage.central.disconnect(Self.id)
            await stage.fake.remove(FakeBlueZ.device)
            try await stage.central.disconnect(Self.id)
            try await stage.central.forget(Self.id)
        }
    }

    @Test func `a disconnect that is never answered ends at its deadline`() async throws {
        var limits = BlueZCentral.Limits()
        limits.operation = .milliseconds(50)
        try await Stage.run(limits: limits) { stage in
            await stage.fake.hang("Disconnect")
            let central = stage.central
            let result = await outcome { () throws(BluetoothError) in try await central.disconnect(Self.id) }
            #expect(result.kind == .timedOut)
        }
    }

    @Test func `a forgotten peripheral is removed from its adapter`() async throws {
        try await Stage.run { stage in
            await stage.fake.on("RemoveDevice") { fake, call in
                fake.remove(try call.arguments().first?.string ?? "")
                try call.reply()
            }
            try await stage.central.forget(Self.id)
            try await stage.events.expect(.peripheralRemoved(Self.id))
        }
    }

    @Test func `a peripheral with two objects has one bond, and both are forgotten`() async throws {
        try await Stage.run { stage in
            let properties: FakeBlueZ.Properties = [
                "Address": .string("C0:FF:EE:00:00:01"), "Adapter": .objectPath(FakeBlueZ.adapter),
                "Connected": .boolean(true), "Paired": .boolean(true),
            ]
            await stage.fake.add("/org/bluez/hci0/dev_7F_FF_EE_00_00_01", "org.bluez.Device1", properties)
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.isConnected } else { false }
            }
            let bonds = try await stage.central.bonds()
            #expect(bonds.map(\.peripheral) == [Self.id] && bonds.map(\.isPaired) == [true])
            await stage.fake.on("RemoveDevice") { fake, call in
                fake.remove(try call.arguments().first?.string ?? "")
                try call.reply()
            }
            try await stage.central.forget(Self.id)
            try await stage.events.expect(.peripheralRemoved(Self.id))
            #expect(await stage.fake.asked.filter { $0 == "RemoveDevice" }.count == 2)
        }
    }

    // MARK: - The table

    private func table(_ stage: Stage) async -> Result<[RemoteCharacteristic], BluetoothError> {
        let central = stage.central
        return await outcome { () throws(BluetoothError) in
            try await central.characteristics(of: Self.id, timeout: .seconds(20))
        }
    }

    @Test func `objects that come after ServicesResolved are awaited`() async throws {
        try await Stage.run { stage in
            await stage.fake.on("Connect") { fake, call in
                fake.setConnected(true)
                try call.reply()
            }
            try await stage.central.connect(Self.id, timeout: .seconds(20))
            async let awaited = table(stage)
            await stage.fake.waitForCall("GetAll", times: 3)
            await stage.fake.addTable()
            #expect(try await awaited.get().count > 0)
        }
    }

    @Test func `waiting for the table ends with the link`() async throws {
        try await Stage.run { stage in
            await stage.fake.on("Connect") { fake, call in
                fake.setDevice(["Connected": .boolean(true)])
                try call.reply()
            }
            try await stage.central.connect(Self.id, timeout: .seconds(20))
            async let awaited = table(stage)
            await stage.fake.waitForCall("GetAll", times: 2)
            await stage.fake.setDevice(["Connected": .boolean(false)])
            #expect(await awaited.kind == .notConnected)
            #expect(await table(stage).kind == .notConnected)
        }
    }

    @Test func `a table that does not arrive in time is a timeout`() async throws {
        try await Stage.run { stage in
            await stage.fake.setDevice(["Connected": .boolean(true)])
            let central = stage.central
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.isConnected } else { false }
            }
            let result = await outcome { () throws(BluetoothError) in
                try await central.characteristics(of: Self.id, timeout: .milliseconds(30))
            }
            #expect(result.kind == .timedOut)
        }
    }

    @Test func `a link is not used while bluetoothd ends it after a cancelled attempt`() async throws {
        var limits = BlueZCentral.Limits()
        limits.operation = .seconds(600)
        try await Stage.run(limits: limits) { stage in
            await stage.fake.on("Connect") { fake, _ in
                fake.addTable()
                fake.setConnected(true)
            }
            await stage.fake.hang("Disconnect")
            let attempt = Task { await connect(stage).kind }
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.isConnected } else { false }
            }
            attempt.cancel()
            #expect(await attempt.value == .cancelled)
            let central = stage.central
            let early = await outcome { () throws(BluetoothError) in
                try await central.characteristics(of: Self.id, timeout: .milliseconds(30))
            }
            #expect(early.kind == .timedOut)
            await stage.fake.setConnected(false)
            #expect(await table(stage).kind == .notConnected)
        }
    }

    @Test func `a changed table is reported when no more changes follow`() async throws {
        let loop = EventLoop(name: "test")
        try await Stage.run(loop: loop) { stage in
            let characteristic = try await stage.connected()
            await loop.standStill {
                await stage.fake.remove(FakeBlueZ.measurement)
                await stage.fake.remove(FakeBlueZ.control)
                await stage.fake.makeRoundTrip()
            }
            try await stage.events.expect(.servicesChanged(Self.id))
            let central = stage.central
            let reading = await outcome { () throws(BluetoothError) in try await central.read(characteristic) }
            #expect(reading.kind == .unknownAttribute)
            await stage.fake.setDevice(["Connected": .boolean(false)])
            try await stage.events.expect(.disconnected(Self.id))
            #expect(stage.events.seen.filter { $0 == .servicesChanged(Self.id) }.count == 1)
        }
        loop.stop()
    }
}
