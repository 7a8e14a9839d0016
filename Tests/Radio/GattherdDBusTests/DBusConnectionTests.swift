import GattherdDBus
import GattherdSync
import Glibc
import TestKit
import Testing

/// A bus with a client, and a service whose methods do what their names say.
private struct Stage {
    static let name = "org.example.Stage"
    static let path = "/org/example/Stage"
    let bus: PrivateBus
    let service: DBusConnection
    let client: DBusConnection

    init() async throws {
        bus = try PrivateBus()
        let loop = EventLoop(name: "test")
        service = try await .open(.address(bus.address), on: loop)
        client = try await .open(.address(bus.address), on: loop)
        try await service.requestName(Self.name)
        let calls = Actor(on: service)
        await calls.serve()
    }

    @discardableResult
    func call(
        _ member: String,
        _ arguments: DBusValue...,
        timeout: Duration = .seconds(20)
    ) async throws(DBusError) -> [DBusValue] {
        try await client.call(Self.name, Self.path, "org.example.Stage", member, arguments, timeout: timeout)
    }

    func close() async {
        await client.close()
        await service.close()
        client.loop.stop()
    }
}

/// Answers on the service's side.
private actor Actor {
    private let connection: DBusConnection
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe connection.unownedExecutor }
    private var held: [DBusMethodCall] = []

    init(on connection: DBusConnection) {
        self.connection = connection
    }

    func serve() {
        connection.export("/org/example", subtree: true) { call in
            do { try self.answer(call) } catch { Issue.record(error) }
        }
    }

    private func answer(_ call: DBusMethodCall) throws {
        switch call.member {
        case "Echo": try call.reply(call.arguments())
        case "Where": try call.reply([.objectPath(call.path), .string(call.interface)])
        case "Fail": try call.fail(DBusError(name: "org.example.Error.Asked", message: "as you wish"))
        case "Hold": held.append(call)
        case "Held": try call.reply([.uint32(UInt32(held.count))])
        case "Release":
            for call in held.reversed() { try call.reply(call.arguments()) }
            held.removeAll()
            try call.reply()
        case "Count":
            let limit = try call.arguments().first?.int ?? 0
            for number in 0..<limit {
                try connection.emit(Stage.path, "org.example.Stage", "Number", [.int32(Int32(number))])
            }
            try call.reply()
        default: try call.failUnknownMethod()
        }
    }
}

@Suite(.timeLimit(.minutes(3))) struct DBusConnectionTests {
    @Test func `a call returns the values of its reply`() async throws {
        let stage = try await Stage()
        #expect(await stage.client.uniqueName.hasPrefix(":1."))
        #expect(try await stage.call("Echo", .string("hello"), .int32(-1)) == [.string("hello"), .int32(-1)])
        await stage.close()
    }

    @Test func `a call without arguments is answered without any`() async throws {
        let stage = try await Stage()
        #expect(try await stage.call("Echo").isEmpty)
        await stage.close()
    }

    @Test func `an error keeps its name and its words`() async throws {
        let stage = try await Stage()
        let asked = DBusError(name: "org.example.Error.Asked", message: "as you wish")
        await #expect(throws: asked) { try await stage.call("Fail") }
        await #expect { try await stage.call("Nonsense") } throws: { error in
            (error as? DBusError)?.name == "org.freedesktop.DBus.Error.UnknownMethod"
        }
        await stage.close()
    }

    @Test func `a call to an absent receiver fails and does not start it`() async throws {
        let stage = try await Stage()
        #expect(try await stage.client.nameOwner("org.example.Nobody") == nil)
        await #expect {
            try await stage.client.call("org.example.Nobody", "/", "a.b", "C", timeout: .seconds(20))
        } throws: { error in
            (error as? DBusError)?.name == "org.freedesktop.DBus.Error.NameHasNoOwner"
                || (error as? DBusError)?.name == "org.freedesktop.DBus.Error.ServiceUnknown"
        }
        await stage.close()
    }

    @Test func `the subtree's handler gets the calls of the paths below`() async throws {
        let stage = try await Stage()
        let deep = "/org/example/a/b/c"
        let reply = try await stage.client.call(Stage.name, deep, "x.y", "Where", timeout: .seconds(20))
        #expect(reply == [.objectPath(deep), .string("x.y")])
        await #expect(throws: DBusError.self) {
            try await stage.client.call(Stage.name, "/org/other", "x.y", "Where", timeout: .seconds(20))
        }
        await stage.close()
    }

    @Test func `a call of an unknown path is answered, as D-Bus requires`() async throws {
        let stage = try await Stage()
        let peer = "org.freedesktop.DBus.Peer"
        let limit = Duration.seconds(20)
        #expect(try await stage.client.call(Stage.name, "/org/other", peer, "Ping", timeout: limit) == [])
        let identifier = try await stage.client.call(Stage.name, "/org/other", peer, "GetMachineId", timeout: limit)
        #expect(identifier.first?.string?.utf8.count == 32)
        await #expect {
            try await stage.client.call(Stage.name, "/org/other", "x.y", "Where", timeout: limit)
        } throws: { error in
            (error as? DBusError)?.name == "org.freedesktop.DBus.Error.UnknownObject"
        }
        await stage.close()
    }

    @Test func `a deadline ends only the wait`() async throws {
        let stage = try await Stage()
        await #expect { try await stage.call("Hold", .string("late"), timeout: .milliseconds(10)) } throws: { error in
            (error as? DBusError)?.name == DBusError.timeoutName
        }
        try await stage.call("Release")
        #expect(try await stage.call("Echo", .string("next")) == [.string("next")])
        await stage.close()
    }

    @Test func `a task that was cancelled before its call does not wait, not even on the loop's thread`() async throws {
        let stage = try await Stage()
        let call = Task(executorPreference: LoopTaskExecutor(stage.client.loop)) {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try await stage.call("Hold")
        }
        await #expect { try await call.value } throws: { ($0 as? DBusError)?.name == DBusError.cancelledName }
        await stage.close()
    }

    @Test func `a cancelled task does not wait`() async throws {
        let stage = try await Stage()
        let name = await withTaskGroup(of: String?.self) { group in
            group.addTask {
                do throws(DBusError) { try await stage.call("Hold") } catch { return error.name }
                return nil
            }
            group.cancelAll()
            return await group.next() ?? nil
        }
        #expect(name == DBusError.cancelledName)
        try await stage.call("Release")
        #expect(try await stage.call("Echo", .byte(1)) == [.byte(1)])
        await stage.close()
    }

    @Test func `replies find their calls in any order`() async throws {
        let stage = try await Stage()
        let echoed = try await withThrowingTaskGroup(of: (Int, Int?).self) { group in
            for number in 0..<20 {
                group.addTask { (number, try await stage.call("Hold", .int64(Int64(number))).first?.int) }
            }
            try await eventually { try await stage.call("Held") == [.uint32(20)] }
            try await stage.call("Release")
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(echoed == Dictionary(uniqueKeysWithValues: (0..<20).map { ($0, $0) }))
        await stage.close()
    }

    @Test func `more calls than may be open wait for their turn`() async throws {
        let stage = try await Stage()
        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<400 {
                group.addTask { try await stage.call("Echo", .int64(Int64(number))).first?.int ?? -1 }
            }
            return try await group.reduce(0, +)
        }
        #expect(sum == (0..<400).reduce(0, +))
        await stage.close()
    }

    @Test func `the loss of the bus fails every call and is reported once`() async throws {
        let stage = try await Stage()
        let gone = Locked(0)
        stage.client.loop.execute { stage.client.onDisconnect { gone.withLock { $0 += 1 } } }
        let names = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    do throws(DBusError) { try await stage.call("Hold") } catch { return error.name }
                    return "answered"
                }
            }
            try await eventually { try await stage.call("Held") == [.uint32(50)] }
            await stage.bus.kill()
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(names == [DBusError.disconnectedName])
        #expect(gone.withLock { $0 } == 1)
        await #expect(throws: DBusError.self) { try await stage.call("Echo") }
        await stage.close()
    }

    @Test func `closing ends the calls that wait`() async throws {
        let stage = try await Stage()
        await withDiscardingTaskGroup { group in
            group.addTask {
                await #expect(throws: DBusError.self) { try await stage.call("Hold") }
            }
            await stage.client.close()
        }
        #expect(await !stage.client.isConnected)
        await stage.close()
    }

    @Test func `signals come in the order in which they were sent`() async throws {
        let stage = try await Stage()
        try await stage.client.addMatch("type='signal',interface='org.example.Stage'")
        let filter = DBusSignalFilter(path: Stage.path, interface: "org.example.Stage", member: "Number")
        let signals = await stage.client.signals(matching: filter)
        try await stage.call("Count", .int32(1000))
        var numbers: [Int] = []
        for await signal in signals {
            numbers.append(signal.arguments.first?.int ?? -1)
            if numbers.count == 1000 { break }
        }
        #expect(numbers == Array(0..<1000))
        await stage.close()
    }

    @Test func `a stream of signals ends with the connection`() async throws {
        let stage = try await Stage()
        let signals = await stage.client.signals(matching: DBusSignalFilter())
        await stage.client.close()
        for await signal in signals where signal.interface == "org.example.Stage" { Issue.record("\(signal)") }
        for await _ in await stage.client.signals(matching: DBusSignalFilter()) { Issue.record("closed") }
        await stage.close()
    }

    @Test func `a wrong match rule is an error`() async throws {
        let stage = try await Stage()
        await #expect(throws: DBusError.self) { try await stage.client.addMatch("nonsense") }
        await #expect(throws: DBusError.self) { try await stage.client.addMatch("type='sig\0nal'") }
        await stage.close()
    }

    @Test func `a name has one owner, and is free after its release`() async throws {
        let stage = try await Stage()
        await #expect(throws: DBusError.self) { try await stage.client.requestName(Stage.name) }
        try await stage.service.releaseName(Stage.name)
        try await stage.client.requestName(Stage.name)
        #expect(try await stage.client.nameOwner(Stage.name) == stage.client.uniqueName)
        await stage.close()
    }
}

@Suite(.timeLimit(.minutes(3))) struct DBusOpeningTests {
    @Test func `a missing bus is an error with its address`() async throws {
        let loop = EventLoop(name: "test")
        let address = "unix:path=/nonexistent/bus"
        await #expect { try await DBusConnection.open(.address(address), on: loop) } throws: { error in
            (error as? DBusError)?.message.contains(address) == true
        }
        loop.stop()
    }

    @Test(arguments: ["", "nonsense", "unix:path=\0", "nonsense:path=x"])
    func `an invalid address is an error`(text: String) async throws {
        let loop = EventLoop(name: "test")
        await #expect(throws: DBusError.self) { try await DBusConnection.open(.address(text), on: loop) }
        loop.stop()
    }

    @Test func `a bus that hangs up during the handshake fails at once`() async throws {
        let folder = try TemporaryFolder()
        let rude = try RudeListener(folder.file("bus"))
        let loop = EventLoop(name: "test")
        for _ in 0..<50 {
            await #expect {
                try await DBusConnection.open(.address("unix:path=" + folder.file("bus")), on: loop)
            } throws: { error in
                (error as? DBusError)?.name == DBusError.disconnectedName && (error as? DBusError)?.isFromBus == true
            }
        }
        rude.stop()
        loop.stop()
    }

    @Test func `a bus that hangs fails at the deadline and blocks nothing meanwhile`() async throws {
        let bus = try PrivateBus()
        let loop = EventLoop(name: "test")
        bus.pause()
        await #expect(throws: DBusError.self) {
            try await DBusConnection.open(.address(bus.address), on: loop, timeout: .milliseconds(20))
        }
        bus.resume()
        let connection = try await DBusConnection.open(.address(bus.address), on: loop)
        #expect(await connection.isConnected)
        await connection.close()
        loop.stop()
    }

    @Test func `a cancelled opening does not wait`() async throws {
        let bus = try PrivateBus()
        let loop = EventLoop(name: "test")
        bus.pause()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await #expect { try await DBusConnection.open(.address(bus.address), on: loop) } throws: { error in
                    (error as? DBusError)?.name == DBusError.cancelledName
                }
            }
            group.cancelAll()
        }
        bus.resume()
        loop.stop()
    }
}

/// Accepts connections and closes them at once.
private struct RudeListener {
    private let descriptor: Int32

    struct CannotListen: Error {}

    init(_ path: String) throws {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let isBound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(descriptor, $0, size) == 0 }
        }
        guard isBound, listen(descriptor, 16) == 0 else { throw CannotListen() }
        self.descriptor = descriptor
        _ = NamedThread(name: "rude") {
            while true {
                let client = accept(descriptor, nil, nil)
                guard client >= 0 else { break }
                close(client)
            }
            close(descriptor)
        }
    }

    func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }
}
