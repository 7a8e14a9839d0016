import GattherdDBus
import GattherdSync
import Glibc
import TestKit
import Testing

/// Two connections of one process: one sends values, and the other returns them.
private struct Echo {
    let bus: PrivateBus
    let loop = EventLoop(name: "test")
    let server: DBusConnection
    let client: DBusConnection
    let name: String

    init() async throws {
        bus = try PrivateBus()
        server = try await .open(.address(bus.address), on: loop)
        client = try await .open(.address(bus.address), on: loop)
        name = await server.uniqueName
        let server = server
        loop.execute {
            server.export("/") { call in
                do throws(DBusError) { try call.reply(call.arguments()) } catch { try? call.fail(error) }
            }
        }
    }

    func callAsFunction(_ values: DBusValue...) async throws(DBusError) -> [DBusValue] {
        try await client.call(name, "/", "org.example.Echo", "Echo", values, timeout: .seconds(20))
    }

    func close() async {
        await client.close()
        await server.close()
        loop.stop()
    }
}

@Suite(.timeLimit(.minutes(3))) struct DBusValueTests {
    private static var samples: [DBusValue] {
        [
            .byte(255), .boolean(true), .boolean(false), .int16(.min), .uint16(.max), .int32(.min), .uint32(.max),
            .int64(.min), .uint64(.max), .double(-0.1), .double(.infinity), .string(""),
            .string("Grüße, 世界 \u{10FFFF}"),
            .objectPath("/"), .objectPath("/org/bluez/hci0"), .signature(""), .signature("a{sv}(ii)"),
            .bytes([]), .bytes([0, 1, 255]), .bytes(Array(repeating: 7, count: 1 << 20)),
            .array(element: "s", []), .strings(["a", "", "b"]), .array(element: "ay", [.bytes([1]), .bytes([])]),
            .array(element: "a{sv}", [.properties(["x": .byte(1)]), .properties([:])]),
            .dictionary(key: "s", value: "v", []),
            .dictionary(key: "q", value: "ay", [DBusEntry(.uint16(0x004C), .bytes([2, 21]))]),
            .dictionary(
                key: "o",
                value: "a{sa{sv}}",
                [
                    DBusEntry(
                        .objectPath("/a"),
                        .dictionary(
                            key: "s",
                            value: "a{sv}",
                            [DBusEntry(.string("i"), .properties(["n": .strings(["1"])]))]
                        )
                    )
                ]
            ),
            .structure([.byte(1), .structure([.string("x")]), .variant(.variant(.uint64(1)))]),
            .array(element: "(yv)", [.structure([.byte(1), .variant(.bytes([1, 2]))])]),
            .variant(.properties(["Transport": .string("le"), "DuplicateData": .boolean(false)])),
        ]
    }

    @Test func `every type is sent and returned unchanged`() async throws {
        let echo = try await Echo()
        for sample in Self.samples { #expect(try await echo(sample) == [sample]) }
        await echo.close()
    }

    @Test func `many arguments in one message are returned unchanged`() async throws {
        let echo = try await Echo()
        let reply = try await echo(.byte(1), .strings(["x"]), .variant(.int16(-3)), .structure([.double(0.5)]))
        #expect(reply == [.byte(1), .strings(["x"]), .variant(.int16(-3)), .structure([.double(0.5)])])
        await echo.close()
    }

    private static func nested(_ depth: Int, _ wrap: (DBusValue) -> DBusValue) -> DBusValue {
        (0..<depth).reduce(.byte(1)) { value, _ in wrap(value) }
    }

    @Test func `nesting is allowed up to the limit of D-Bus, and is an error beyond it`() async throws {
        let echo = try await Echo()
        let variants = Self.nested(64) { .variant($0) }
        let arrays = Self.nested(32) { .array(element: $0.signature, [$0]) }
        #expect(try await echo(variants) == [variants])
        #expect(arrays.signature == String(repeating: "a", count: 32) + "y")
        #expect(try await echo(Self.nested(32) { .structure([$0]) }) == [Self.nested(32) { .structure([$0]) }])
        await #expect(throws: DBusError.self) { try await echo(.variant(variants)) }
        await #expect(throws: DBusError.self) { try await echo(Self.nested(33) { .structure([$0]) }) }
        await #expect(throws: DBusError.self) { try await echo(Self.nested(5000) { .variant($0) }) }
        #expect(try await echo(.byte(1)) == [.byte(1)])
        await echo.close()
    }

    private static var wrong: [DBusValue] {
        [
            .string("a\0b"), .objectPath(""), .objectPath("x"), .objectPath("/a/"), .objectPath("/a\0"),
            .objectPath("/ä"), .signature("a"), .signature("("), .signature("y\0"), .structure([]),
            .array(element: "", []), .array(element: "yy", []), .array(element: "s", [.byte(1)]),
            .array(element: "s\0", []), .array(element: "ay", [.strings([])]),
            .dictionary(key: "v", value: "y", []), .dictionary(key: "s", value: "", []),
            .dictionary(key: "s", value: "y", [DBusEntry(.byte(1), .byte(1))]),
            .variant(.structure([])), .variant(.array(element: "z", [])),
            .bytes(Array(repeating: 0, count: 33 << 20)), .signature(String(repeating: "y", count: 300)),
        ]
    }

    @Test func `invalid values are errors and never reach libdbus`() async throws {
        let echo = try await Echo()
        for value in Self.wrong {
            await #expect(throws: DBusError.self, "\(value.signature.prefix(80))") { try await echo(value) }
        }
        #expect(try await echo(.byte(1)) == [.byte(1)])
        await echo.close()
    }

    private static let wrongNames: [(String, String, String, String)] = [
        ("nonsense", "/", "a.b", "C"), (":1.1", "nopath", "a.b", "C"), (":1.1", "/", "ab", "C"),
        (":1.1", "/", "a.b", "C.D"),
        ("", "/", "a.b", "C"), (":1.1", "", "a.b", "C"), (":1.1", "/", "", "C"), (":1.1", "/", "a.b", ""),
        (":1.1\0", "/", "a.b", "C"), (":1.1", "/\0", "a.b", "C"), (":1.1", "/", "a.b\0", "C"),
        (":1.1", "/", "a.b", "C\0"),
        (":1.1", "/", "a.b", String(repeating: "x", count: 256)), (":1.1", "/ö", "a.b", "C"),
    ]

    @Test func `invalid names and paths are errors and never reach libdbus`() async throws {
        let echo = try await Echo()
        for (destination, path, interface, member) in Self.wrongNames {
            await #expect(throws: DBusError.self) {
                try await echo.client.call(destination, path, interface, member, timeout: .seconds(20))
            }
        }
        #expect(try await echo(.byte(1)) == [.byte(1)])
        await echo.close()
    }

    @Test func `a descriptor arrives as another number for the same file`() async throws {
        let echo = try await Echo()
        var ends: [Int32] = [-1, -1]
        try #require(unsafe pipe(&ends) == 0)
        let reader = DBusDescriptor(owning: ends[0])
        guard case .fileDescriptor(let received) = try await echo(.fileDescriptor(reader)).first else {
            Issue.record("no descriptor came back")
            return
        }
        #expect(received.rawValue != reader.rawValue)
        #expect(unsafe write(ends[1], "x", 1) == 1)
        var byte: UInt8 = 0
        #expect(unsafe read(received.rawValue, &byte, 1) == 1)
        #expect(byte == UInt8(ascii: "x"))
        close(ends[1])
        await echo.close()
    }

    @Test func `a descriptor that was given away cannot be sent`() async throws {
        let echo = try await Echo()
        let descriptor = DBusDescriptor(owning: dup(0))
        close(descriptor.release())
        await #expect(throws: DBusError.self) { try await echo(.fileDescriptor(descriptor)) }
        await echo.close()
    }

    @Test func `all descriptors of a released message are closed`() async throws {
        let echo = try await Echo()
        let before = try openDescriptors()
        for _ in 0..<50 { _ = try await echo(.fileDescriptor(DBusDescriptor(owning: dup(0))), .string("x")) }
        #expect(try openDescriptors() <= before + 5)
        await echo.close()
    }

    private func openDescriptors() throws -> Int {
        (0..<1024).count { fcntl($0, F_GETFD) >= 0 }
    }

    @Test func `a dictionary is looked up by its keys, through its variants`() {
        let value = DBusValue.properties(["Name": .string("strap"), "RSSI": .int16(-60), "Data": .bytes([1])])
        #expect(value["Name"]?.string == "strap")
        #expect(value["RSSI"]?.int == -60)
        #expect(value["Data"]?.bytes == [1])
        #expect(value["Powered"] == nil)
        #expect(value["Name"]?.int == nil)
        #expect(DBusValue.strings(["a"]).strings == ["a"])
        #expect(DBusValue.variant(.variant(.boolean(true))).bool == true)
        #expect(DBusValue.uint64(.max).int == nil)
    }
}
