import GattherdDBus
import GattherdSync
import TestKit
import Testing

@Suite(.timeLimit(.minutes(1))) struct DBusConnectionTests {
    @Test func `the bus gives a unique name`() async throws {
        let bus = try PrivateBus()
        let loop = EventLoop(name: "test")
        let connection = try await DBusConnection.open(.address(bus.address), on: loop)
        #expect(await connection.uniqueName.hasPrefix(":1."))
        let owner = try await connection.nameOwner("org.freedesktop.DBus")
        #expect(owner == "org.freedesktop.DBus")
        await connection.close()
    }
}
