import GattherdDBus
import Testing

@testable import GattherdSimulator

/// Sockets of `AcquireWrite`, and sockets of clients that have left.
@Suite struct SocketTests {
    private static let none = DBusValue.properties([Property]())

    private static func pipe(_ properties: String = "write, write-without-response") throws -> (Bench, path: String) {
        var bench = try Bench(
            kind: "custom",
            ", services: [{uuid: fff0, characteristics: [{uuid: fff1, properties: [\(properties)]}]}]"
        )
        bench.connect()
        return (bench, try bench.characteristic(0))
    }

    @Test func `a write socket is exclusive and blocks WriteValue`() throws {
        var (bench, path) = try Self.pipe()
        #expect(bench.get(path, "WriteAcquired") == "false")
        let lines = bench.call(path, "AcquireWrite", Self.none)
        #expect(lines.first == "char000b WriteAcquired=true")
        #expect(lines.last?.hasSuffix("for 4 mtu 517") == true)
        let acquired = "NotPermitted: Write acquired"
        #expect(bench.call(path, "AcquireWrite", Self.none, from: ":1.2") == ["fail 5 \(acquired)"])
        #expect(bench.call(path, "WriteValue", .bytes([1]), Self.none) == ["fail 6 \(acquired)"])
        #expect(bench.closeReader() == ["char000b WriteAcquired=false"])
        bench.call(path, "WriteValue", .bytes([1]), Self.none)
        #expect(bench.wait(.milliseconds(5)).last == "reply 7")
    }

    @Test func `each packet is a write command of at most 512 octets`() throws {
        var (bench, path) = try Self.pipe()
        bench.call(path, "AcquireWrite", Self.none)
        #expect(bench.write([7, 8]) == ["(write fff1 0708)"])
        #expect(bench.write([UInt8](repeating: 0, count: 600)).first?.count == "(write fff1 )".count + 1024)
    }

    @Test func `a write socket ends with the link`() throws {
        var (bench, path) = try Self.pipe()
        bench.call(path, "AcquireWrite", Self.none)
        let lines = try bench.order(.drop("p"))
        #expect(lines.suffix(2).first?.hasPrefix("close ") == true)
        #expect(lines.last == "char000b WriteAcquired=false")
        #expect(bench.call(path, "AcquireWrite", Self.none) == ["fail 4 Failed: Not connected"])
    }

    @Test func `AcquireWrite needs the property write-without-response`() throws {
        var (bench, path) = try Self.pipe("write, notify")
        #expect(bench.call(path, "AcquireWrite", Self.none) == ["fail 3 NotSupported: Operation is not supported"])
        #expect(bench.get(path, "WriteAcquired").contains("No such property"))
    }

    @Test func `a client that leaves the bus before it closes its notify socket crashes bluetoothd`() throws {
        var (bench, path) = try Self.pipe("notify")
        bench.call(path, "AcquireNotify", Self.none)
        bench.wait(.milliseconds(5))
        bench.leave(":1.1")
        bench.wait(.milliseconds(500))
        let lines = bench.closeReader()
        #expect(lines.first == "(crash)")
        #expect(lines.last == "stop")
        #expect(bench.wait(.seconds(2)).contains("start"))
    }

    @Test func `a client that closes its sockets first, or dies, crashes nothing`() throws {
        var (bench, path) = try Self.pipe("notify")
        for isDead in [false, true] {
            bench.call(path, "AcquireNotify", Self.none)
            bench.wait(.milliseconds(5))
            if isDead { bench.leave(":1.1") }
            #expect(bench.closeReader() == ["char000b NotifyAcquired=false", "(unsubscribed)"])
            bench.leave(":1.1")
        }
    }
}
