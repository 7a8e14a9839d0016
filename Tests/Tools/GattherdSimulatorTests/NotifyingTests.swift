import GattherdDBus
import GattherdGATT
import Testing

@testable import GattherdSimulator

@Suite struct NotifyingTests {
    private static let none = DBusValue.properties([Property]())

    private static func strap(_ more: String = ", rate: 10") throws -> (Bench, path: String) {
        var bench = try Bench(kind: "heart-rate", more)
        bench.connect()
        return (bench, try bench.characteristic(0))
    }

    @Test func `notifications have their rate and are delivered after the subscription`() throws {
        var (bench, path) = try Self.strap()
        let before = bench.wait(.seconds(1))
        #expect(before.count == 10)
        #expect(before.allSatisfy { $0.hasSuffix("lost)") })
        bench.call(path, "StartNotify")
        let lines = bench.wait(.seconds(1))
        #expect(lines.count { $0.hasPrefix("char000b Value=") } == 10)
        #expect(lines.count { $0.hasPrefix("(2a37 #") && !$0.hasSuffix("lost)") } == 10)
    }

    @Test func `a notify session survives a drop and is restored without the client`() throws {
        var (bench, path) = try Self.strap()
        bench.call(path, "StartNotify")
        bench.wait(.seconds(1))
        #expect(try !bench.order(.drop("p")).contains { $0.contains("Notifying") })
        bench.call(Bench.device, "Connect")
        let lines = bench.wait(.seconds(1))
        #expect(lines.contains("(subscribed)"))
        #expect(lines.contains { $0.hasPrefix("char000b Value=") })
        #expect(bench.call(path, "StartNotify") == ["reply 5"])
    }

    @Test func `StartNotify without a link succeeds and takes effect at the next connection`() throws {
        var (bench, path) = try Self.strap()
        try bench.order(.drop("p"))
        #expect(bench.call(path, "StartNotify") == ["reply 3"])
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(1)).contains("char000b Notifying=true"))
    }

    @Test func `the subscription ends with the last session`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        bench.call(path, "StartNotify", from: ":1.1")
        bench.wait(.milliseconds(5))
        #expect(bench.call(path, "StartNotify", from: ":1.2") == ["reply 4"])
        #expect(bench.call(path, "StopNotify", from: ":1.1") == ["reply 5"])
        #expect(bench.leave(":1.2") == ["(unsubscribed)", "char000b Notifying=false"])
        #expect(bench.call(path, "StopNotify", from: ":1.1") == ["fail 6 Failed: No notify session started"])
    }

    @Test func `each value is signalled once per client session`() throws {
        var (bench, path) = try Self.strap()
        bench.call(path, "StartNotify", from: ":1.1")
        bench.wait(.milliseconds(5))
        bench.call(path, "StartNotify", from: ":1.2")
        let values = bench.wait(.seconds(1)).filter { $0.hasPrefix("char000b Value=") }
        #expect(values.count == 20)
        #expect(stride(from: 0, to: 20, by: 2).allSatisfy { values[$0] == values[$0 + 1] })
    }

    @Test func `a client that leaves during StartNotify leaves no subscription`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        bench.call(path, "StartNotify", from: ":1.7")
        bench.leave(":1.7")
        #expect(bench.wait(.seconds(1)) == [])
        bench.call(path, "AcquireNotify", Self.none, from: ":1.8")
        bench.leave(":1.8")
        bench.wait(.seconds(1))
        bench.call(path, "AcquireNotify", Self.none)
        #expect(bench.wait(.seconds(1)).contains { $0.hasPrefix("socket") })
    }

    @Test func `StartNotify fails on characteristics without notify or indicate`() throws {
        var (bench, _) = try Self.strap()
        let location = try bench.characteristic(1)
        #expect(bench.call(location, "StartNotify") == ["fail 3 NotSupported: Operation is not supported"])
        #expect(bench.call(location, "AcquireNotify", Self.none) == ["fail 4 NotSupported: Operation is not supported"])
    }

    @Test func `a notify socket is exclusive, carries the values and ends with the link`() throws {
        var (bench, path) = try Self.strap()
        #expect(bench.call(path, "AcquireNotify", Self.none) == [])
        let lines = bench.wait(.seconds(0.09))
        let socket = try #require(lines.first { $0.hasPrefix("socket") })
        #expect(lines.contains("char000b NotifyAcquired=true"))
        #expect(socket.hasSuffix("for 3 mtu 517"))
        #expect(bench.call(path, "StartNotify") == ["fail 4 NotPermitted: Notify acquired"])
        #expect(bench.call(path, "AcquireNotify", Self.none) == ["fail 5 NotPermitted: Notify acquired"])
        let sent = bench.wait(.seconds(1))
        #expect(sent.count == 10)
        #expect(sent.allSatisfy { $0.hasPrefix("send ") })
        let number = try #require(socket.split(separator: " ").dropFirst().first)
        #expect(
            try bench.order(.drop("p")) == [
                "(disconnected remote)", "dev_C0_FF_EE_00_00_01 ServicesResolved=false Connected=false",
                "close \(number)", "char000b NotifyAcquired=false",
            ]
        )
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(1)).filter { $0.hasPrefix("(2a37") }.allSatisfy { $0.hasSuffix("lost)") })
    }

    @Test func `a notify session excludes a socket`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        bench.call(path, "StartNotify")
        bench.wait(.milliseconds(5))
        #expect(bench.call(path, "AcquireNotify", Self.none) == ["fail 4 InProgress: In Progress"])
    }

    @Test func `closing the socket or StopNotify releases the characteristic`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        bench.call(path, "AcquireNotify", Self.none)
        let socket = bench.wait(.milliseconds(5)).last?.split(separator: " ").dropFirst().first
        let number = try #require(socket.flatMap { UInt64($0) })
        #expect(bench.closeReader(number) == ["char000b NotifyAcquired=false", "(unsubscribed)"])
        bench.call(path, "AcquireNotify", Self.none)
        bench.wait(.milliseconds(5))
        let lines = bench.call(path, "StopNotify")
        #expect(lines.first?.hasPrefix("close") == true)
        #expect(lines.last == "reply 5")
    }

    @Test func `a peripheral with silenced notifications still answers requests`() throws {
        var bench = try Bench(kind: "environmental", ", rate: 10")
        bench.connect()
        try bench.order(.silence("p", .notifications))
        #expect(bench.wait(.seconds(1)) == [])
        bench.call(try bench.characteristic(0), "ReadValue", Self.none)
        #expect(bench.wait(.milliseconds(5)).last?.hasPrefix("reply 3 ") == true)
        try bench.order(.silence("p", .off))
        #expect(bench.wait(.seconds(1)).count == 30)
    }

    @Test func `orders change the rate and send single notifications`() throws {
        var (bench, path) = try Self.strap()
        bench.call(path, "StartNotify")
        bench.wait(.milliseconds(5))
        try bench.order(.setRate("p", 0))
        #expect(bench.wait(.seconds(1)) == [])
        let lines = try bench.order(.notify("C0:FF:EE:00:00:01", characteristic: BluetoothUUID(0x2A37), []))
        #expect(lines.first == "char000b Value=")
        try bench.order(.setRate("p", 100))
        #expect(bench.wait(.seconds(1)).count { $0.hasPrefix("char000b") } == 100)
    }

    @Test func `a notified battery level updates Battery1`() throws {
        var bench = try Bench(kind: "battery", ", level: 9, rate: 1")
        bench.connect()
        bench.call(try bench.characteristic(0), "StartNotify")
        #expect(bench.wait(.seconds(1)).contains("dev_C0_FF_EE_00_00_01 Percentage=1"))
    }

    @Test func `notification numbers continue over reconnections`() throws {
        var (bench, path) = try Self.strap()
        bench.call(path, "StartNotify")
        var lines = bench.wait(.seconds(1))
        try bench.order(.drop("p"))
        bench.call(Bench.device, "Connect")
        lines += bench.wait(.seconds(2))
        let numbers = lines.filter { $0.hasPrefix("(2a37 #") }.compactMap { line in
            line.dropFirst(7).split(separator: " ").first.flatMap { Int($0) }
        }
        let first = try #require(numbers.first)
        #expect(numbers == Array(first..<(first + numbers.count)))
    }

    @Test func `a notify session survives Disconnect and Notifying stays true`() throws {
        var (bench, path) = try Self.strap()
        bench.call(path, "StartNotify")
        bench.wait(.seconds(1))
        bench.call(Bench.device, "Disconnect")
        bench.wait(.seconds(2))
        #expect(bench.get(path, "Notifying") == "true")
        bench.call(Bench.device, "Connect")
        let lines = bench.wait(.milliseconds(200))
        #expect(lines.firstIndex(of: "(subscribed)") ?? .max < lines.firstIndex { $0.contains("Resolved=true") } ?? 0)
    }

    @Test func `a repeated StartNotify succeeds and one StopNotify ends the session`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        bench.call(path, "StartNotify")
        bench.wait(.milliseconds(5))
        #expect(bench.call(path, "StartNotify") == ["reply 4"])
        #expect(bench.call(path, "StopNotify") == ["(unsubscribed)", "char000b Notifying=false", "reply 5"])
    }

    @Test func `StopNotify without a link ends the session`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        try bench.order(.drop("p"))
        bench.call(path, "StartNotify")
        #expect(bench.call(path, "StopNotify") == ["reply 4"])
        bench.call(Bench.device, "Connect")
        #expect(!bench.wait(.seconds(1)).contains("(subscribed)"))
    }

    @Test func `notifications go only to the socket, and a read still signals Value`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        let path = try bench.characteristic(0)
        bench.call(path, "AcquireNotify", Self.none)
        bench.wait(.milliseconds(5))
        bench.call(path, "ReadValue", Self.none, from: ":1.2")
        #expect(bench.wait(.milliseconds(5)) == ["char000b Value=00", "reply 4 00"])
        let uuid = try #require(BluetoothUUID("7a4b0001-999f-4717-b63a-066e06971f59"))
        let sent = try bench.order(.notify("p", characteristic: uuid, [7]))
        #expect(sent.count == 1)
        #expect(sent.first?.hasPrefix("send ") == true)
    }

    @Test func `equal notifications are not merged`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        bench.call(path, "StartNotify")
        bench.wait(.milliseconds(5))
        for _ in 0..<50 {
            let lines = try bench.order(.notify("p", characteristic: BluetoothUUID(0x2A37), [6, 77]))
            #expect(lines.first == "char000b Value=064d")
        }
    }

    /// Calls `AcquireNotify`, ends the link before the answer, and connects again.
    private static func interruptAcquisition(_ bench: inout Bench, _ path: String) throws -> [String] {
        bench.call(path, "AcquireNotify", none)
        let lines = try bench.order(.drop("p")) + bench.wait(.seconds(20))
        bench.call(Bench.device, "Connect")
        bench.wait(.seconds(1))
        return lines
    }

    @Test func `AcquireNotify is never answered if the link ends, and reserves the characteristic`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        let lines = try Self.interruptAcquisition(&bench, path)
        #expect(!lines.contains { $0.hasPrefix("fail") || $0.contains("NotifyAcquired") })
        #expect(bench.get(path, "NotifyAcquired") == "true")
        let refusal = "NotPermitted: Notify acquired"
        #expect(bench.call(path, "AcquireNotify", Self.none).first?.hasSuffix(refusal) == true)
        #expect(bench.call(path, "StartNotify").first?.hasSuffix(refusal) == true)
        bench.call(Bench.adapter, "RemoveDevice", .objectPath(Bench.device))
        bench.wait(.seconds(5))
        bench.connect()
        bench.call(path, "AcquireNotify", Self.none)
        #expect(bench.wait(.milliseconds(5)).contains { $0.hasPrefix("socket") })
    }

    @Test func `AcquireNotify is never answered if the peripheral does not answer`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        try bench.order(.silence("p", .all))
        bench.call(path, "AcquireNotify", Self.none)
        let lines = bench.wait(.seconds(40))
        #expect(lines.contains("(disconnected unanswered)"))
        #expect(!lines.contains { $0.hasPrefix("fail") })
        #expect(bench.get(path, "NotifyAcquired") == "true")
    }

    @Test func `StopNotify after an AcquireNotify without an answer crashes bluetoothd`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        try bench.order(.failNext(target: "p", method: "AcquireNotify", error: "no-reply", times: 1))
        #expect(bench.call(path, "AcquireNotify", Self.none) == [])
        #expect(bench.call(path, "StopNotify").first == "(crash)")
    }

    @Test func `a newer bluetoothd answers an AcquireNotify that fails, and releases the characteristic`() throws {
        let strap = "{name: p, address: 'C0:FF:EE:00:00:01', kind: heart-rate, rate: 0}"
        var bench = try Bench("{answers_failed_acquire: true, peripherals: [\(strap)]}")
        bench.connect()
        let path = try bench.characteristic(0)
        let lines = try Self.interruptAcquisition(&bench, path)
        #expect(lines.contains { $0.hasPrefix("fail 3 Failed") })
        bench.call(path, "AcquireNotify", Self.none)
        #expect(bench.wait(.milliseconds(5)).contains { $0.hasPrefix("socket") })
    }

    @Test func `an indicate-only characteristic has no socket`() throws {
        var bench = try Bench(kind: "thermometer")
        bench.connect()
        let path = try bench.characteristic(0)
        #expect(bench.call(path, "AcquireNotify", Self.none) == ["fail 3 NotSupported: Operation is not supported"])
        bench.call(path, "StartNotify")
        #expect(bench.wait(.milliseconds(5)).contains("char000b Notifying=true"))
    }

    @Test func `bluetoothd subscribes to the battery level on its own`() throws {
        var bench = try Bench(kind: "battery")
        bench.connect()
        let lines = try bench.order(.notify("p", characteristic: BluetoothUUID(0x2A19), [42]))
        #expect(lines.first == "dev_C0_FF_EE_00_00_01 Percentage=42")
    }

    @Test func `a burst is sent at once`() throws {
        var (bench, path) = try Self.strap(", rate: 0")
        bench.call(path, "StartNotify")
        bench.wait(.milliseconds(5))
        #expect(try bench.order(.burst("p", 20)).count { $0.hasPrefix("char000b Value=") } == 20)
    }

    @Test func `the host loses the newest values of a burst when the link ends`() throws {
        var (bench, path) = try Self.strap(", rate: 0, lost_tail: 5")
        bench.call(path, "StartNotify")
        bench.wait(.milliseconds(5))
        let sent = try bench.order(.burst("p", 20))
        #expect(sent.count { $0.hasPrefix("char000b Value=") } == 15)
        let lost = try bench.order(.drop("p"))
        let tail = (15..<20).map { "(2a37 #\($0) 00\(String($0 + 60, radix: 16)) lost)" }
        #expect(Array(lost.prefix(6)) == tail + ["(disconnected remote)"])
        #expect(!lost.contains { $0.contains("Value=") })
    }

    @Test func `values older than the host's delay are not lost when the link ends`() throws {
        var (bench, path) = try Self.strap(", rate: 0, lost_tail: 5")
        bench.call(path, "StartNotify")
        bench.wait(.milliseconds(5))
        try bench.order(.burst("p", 3))
        #expect(bench.wait(.milliseconds(20)).count { $0.hasPrefix("char000b Value=") } == 3)
        #expect(try !bench.order(.drop("p")).contains { $0.contains("lost") })
    }
}
