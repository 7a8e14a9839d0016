import GattherdBluetooth
import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdDaemon

/// Devices that write and notify by two characteristics of one UUID.
struct WriteAndNotifyTests {
    private static func remote(_ handle: String, _ properties: CharacteristicProperties) -> RemoteCharacteristic {
        RemoteCharacteristic(
            peripheral: PeripheralID(adapter: BluetoothAddress(value: 1), address: BluetoothAddress(value: 2)),
            service: 0xAAAA,
            uuid: 0xBBBB,
            handle: handle,
            properties: properties
        )
    }

    /// A profile that reads, writes, listens and controls by one UUID.
    private static func profile() throws -> OctetProfile {
        let success = ResponseRule.Case(try #require(BytePattern("81")), .success)
        let answer = ResponseRule(characteristic: 0xBBBB, cases: [success])
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        profile.controls = [
            ControlDescriptor(name: "limit", kind: .integer(0...100), characteristic: 0xBBBB, answer: answer)
        ]
        profile.tasks = [
            ConnectionTaskDescriptor(
                characteristic: 0xBBBB,
                action: .write([1], isAcknowledged: true, answer: answer)
            ),
            ConnectionTaskDescriptor(characteristic: 0xBBBB, action: .listen),
        ]
        return profile
    }

    @Test(arguments: [true, false])
    func `values come from one of them, and writes go to the other`(isInputFirst: Bool) throws {
        let (input, output) = (Self.remote("input", .notify), Self.remote("output", .write))
        let table = isInputFirst ? [input, output] : [output, input]
        let plan = try ProfileAssignment(candidates: [try Self.profile()], areChosen: true, table: table)
        #expect(plan.streams.map(\.remote.handle) == ["input"])
        #expect(plan.controls.map(\.remote.handle) == ["output"])
        #expect(plan.controls.map(\.exchange?.remote.handle) == ["input"])
        #expect(plan.tasks.map(\.remote.handle) == ["output", "input"])
        #expect(plan.tasks.map(\.exchange?.remote.handle) == ["input", nil])
    }

    @Test(arguments: [true, false])
    func `of two characteristics with one UUID, a download writes the writable one and awaits answers from the other`(
        isInputFirst: Bool
    ) throws {
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        profile.characteristics[0].record = RecordRule(doubt: 1)
        let (request, end) = (try #require(WriteTemplate("01")), try #require(BytePattern("FF")))
        let procedure = DownloadDescriptor.Procedure.request(request, end: end)
        var download = DownloadDescriptor(stream: "one", characteristic: 0xBBBB, procedure: procedure)
        download.answers = 0xBBBB
        profile.downloads = [download]
        let (input, output) = (Self.remote("input", .notify), Self.remote("output", .write))
        let table = isInputFirst ? [input, output] : [output, input]
        let plan = try ProfileAssignment(candidates: [profile], areChosen: true, table: table)
        #expect(plan.downloads.map(\.control.handle) == ["output"])
        #expect(plan.downloads.map(\.answering?.handle) == ["input"])
    }

    @Test func `a single characteristic serves all purposes, whatever its properties`() throws {
        for properties in [.write, .notify, []] as [CharacteristicProperties] {
            let table = [Self.remote("only", properties)]
            let plan = try ProfileAssignment(candidates: [try Self.profile()], areChosen: true, table: table)
            #expect(plan.streams.map(\.remote.handle) == ["only"])
            #expect(plan.controls.map(\.remote.handle) == ["only"])
            #expect(plan.tasks.map(\.remote.handle) == ["only", "only"])
        }
    }
}
