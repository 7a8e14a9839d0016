import GattherdGATT
import NumberService
import ProfileKit
import Testing

struct NumberServiceProfileTests {
    private let rehearsal = ProfileTester(NumberServiceProfile.self)

    @Test(arguments: [(0, 0), (1, 0.003922), (127, 0.498039), (128, 0.501961), (255, 1)] as [(UInt8, Double)])
    func `one octet is the number, with its ratio to 255`(octet: UInt8, ratio: Double) throws {
        let samples = try rehearsal.decode([octet], stream: "number")
        #expect(samples == [.init("number", .integer(Int64(octet))), .init("ratio", .real(ratio))])
    }

    @Test func `each ratio belongs to one number`() throws {
        for octet in UInt8.min...UInt8.max {
            guard case .real(let ratio)? = try rehearsal.decode([octet], stream: "number").last?.value else {
                Issue.record("\(octet) has no ratio")
                continue
            }
            #expect((ratio * 255).rounded() == Double(octet))
        }
    }

    @Test(
        arguments: [
            ([], "truncated: a field at offset 0 needs 1 byte, 0 left"),
            ([1, 2], "too long: 1 byte after the last field, at offset 1"),
            (Array("Some Number".utf8), "too long: 10 bytes after the last field, at offset 1"),
        ] as [([UInt8], String)]
    )
    func `payloads of another length are rejected`(payload: [UInt8], reason: String) {
        let error = #expect(throws: PayloadError.self) { try rehearsal.decode(payload, stream: "number") }
        #expect(error?.description == reason)
    }

    @Test(arguments: [0, 127, 255] as [Int64])
    func `the control writes one octet`(number: Int64) throws {
        #expect(try rehearsal.encode(number, control: "number") == [UInt8(number)])
    }

    @Test(arguments: [-1, 256, .max] as [Int64])
    func `the control refuses numbers beyond one octet`(number: Int64) {
        #expect(throws: PayloadError.self) { try rehearsal.encode(number, control: "number") }
    }

    @Test func `the tester rejects two values of a metric that is not repeated, as gattherd does`() throws {
        let tester = ProfileTester(RepetitiveProfile.self)
        #expect(try tester.decode([3, 1], stream: "values").map(\.metric) == ["list", "list", "list", "single"])
        let error = #expect(throws: PayloadError.self) { try tester.decode([0, 2], stream: "values") }
        let reason = "the profile gave metric 'single' twice, but did not declare it as repeated"
        #expect(error?.description == reason)
    }
}

/// A profile that gives as many values of its two metrics as the bytes say.
private struct RepetitiveProfile: NativeProfile {
    static let name = "repetitive"
    static let title = "Repetitive"
    static let services: [BluetoothUUID] = [0xFFF0]
    static let characteristics: [ProfileCharacteristic<Self>] = [
        .init(0xFFF1, stream: "values", subscribe: .notify, decode: values)
    ]

    enum Metrics: Int, MetricSet {
        case list
        case single

        var metric: Metric {
            switch self {
            case .list: Metric("list", isRepeated: true)
            case .single: Metric("single")
            }
        }
    }

    static func values(_ payload: inout PayloadCursor, _ samples: Samples<Metrics>) throws(PayloadError) {
        for _ in 0..<(try payload.u8()) { samples.emit(.list, 1) }
        for _ in 0..<(try payload.u8()) { samples.emit(.single, 1) }
    }
}
