import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// Messages over several notifications, and requests that are repeated.
struct MessageTests {
    private static func profile(_ more: String) -> String {
        """
        contract: 1
        profile: thing
        services: [ff00]
        characteristics:
          - uuid: ff01
            stream: thing
            subscribe: notify
            fields: [{skip: 3}, {metric: level, type: u8}]
            \(more)
        """
    }

    private static let counted = "message: {begins: DD, length: {at: 2, type: u8, add: 4}}"

    @Test func `the keys poll and message become rules of the stream`() throws {
        let poll = "poll: {every: 30s, uuid: ff02, write: [01 02, '03'], within: 3s, response: false}"
        let message = "message: {begins: [DD 03, 'DD ??'], length: {at: 2, type: u16be}, ignore: 41 54, within: 1s}"
        let profile = try DeclarativeText.compile(Self.profile("\(poll)\n    \(message)"))
        let descriptor = try #require(profile.characteristics.first)
        #expect(
            descriptor.poll
                == PollRule(
                    characteristic: 0xFF02,
                    requests: [[1, 2], [3]],
                    period: .seconds(30),
                    timeout: .seconds(3),
                    isAcknowledged: false
                )
        )
        #expect(descriptor.poll?.silence == .seconds(90))
        #expect(
            descriptor.messages
                == MessageRule(
                    beginnings: [try #require(BytePattern("DD 03")), try #require(BytePattern("DD ??"))],
                    extent: .field(at: 2, width: 2, isBigEndian: true, add: 0),
                    ignored: [try #require(BytePattern("41 54"))],
                    timeout: .seconds(1)
                )
        )
    }

    @Test func `a profile with segments compiles to a message rule`() throws {
        let profile = try DeclarativeText.compile(Self.profile("message: {segments: sig, within: 5s}"))
        #expect(profile.characteristics.first?.messages == MessageRule(extent: .segments, timeout: .seconds(5)))
    }

    @Test(
        arguments: [
            ("message: {begins: DD}", "9:14: a message has one of 'length', 'end' and 'segments'"),
            ("message: {length: 5, end: '00'}", "a message has one of 'length', 'end' and 'segments'"),
            ("message: {segments: sig, end: '00'}", "a message has one of 'length', 'end' and 'segments'"),
            ("message: {segments: sig, begins: DD}", "'begins' has no meaning for segments"),
            ("message: {segments: other}", "'other' is invalid; expected one of sig"),
            ("message: {length: 1025}", "'1025' is invalid; expected an integer from 1 to 1024"),
            ("message: {length: {at: 1, type: i8}}", "'i8' is invalid; expected one of u8, "),
            ("message: {length: {at: 1}}", "the length of a message needs 'type'"),
            ("message: {end: ''}", "a message ends with 1 to 16 bytes"),
            ("message: {begins: D, length: 1}", "expected the first bytes of a message"),
            ("message: {begin: DD, length: 1}", "a key 'begin'"), ("poll: {every: 1s, write: '01'}", "from 2s to 1d"),
            ("poll: {every: 5s}", "a poll needs 'write'"), ("poll: {write: '01'}", "a poll needs 'every'"),
            ("poll: {every: 5s, write: []}", "a poll has 1 to 16 requests"),
            ("read: true\n    message: {length: 5}", "'message' is for notified values, and this one is also read"),
        ]
    )
    func `mistakes in poll and message are reported with the reason`(line: String, reason: String) throws {
        let errors = try DeclarativeText.errors(Self.profile(line))
        #expect(errors.contains { $0.contains(reason.replacing("a key 'begin'", with: "no key 'begin'")) }, "\(errors)")
    }

    @Test func `a stream that is not notified has no messages and no requests`() throws {
        let text = Self.profile("message: {length: 5}\n    poll: {every: 5s, write: '01'}")
            .replacing("subscribe: notify", with: "read: true")
        let errors = try DeclarativeText.errors(text)
        #expect(errors.count { $0.contains("needs 'subscribe: notify' or 'subscribe: indicate'") } == 2)
    }

    @Test(
        arguments: [
            (["DD 00 00 05"], ["level 5"]), (["DD 00", "00", "05"], ["level 5"]),
            (["DD 00 00 05 DD", "00 00 06"], ["level 6"]), (["DD 00 00 05 DD 00 00 06"], ["level 6"]),
            (["DD 00 01 05 09"], ["level 5"]), (["DD 00 01 05"], ["incomplete message: 4 of 5 bytes"]),
            (["07"], ["no message begins with these bytes"]),
        ]
    )
    func `several payloads are decoded like notifications of one connection`(
        hex: [String],
        expected: [String]
    ) throws {
        let profile = try DeclarativeText.compile(Self.profile(Self.counted))
        let payloads = hex.compactMap { Hexadecimal.octets($0) }
        var lines: [String]
        do throws(PayloadError) {
            lines = try ProfileTools.decode(payloads, characteristic: 0, of: profile).map { sample in
                "\(sample.metric.name) \(String(decoding: JSONWriter.bytes { $0.value(sample.value) }, as: UTF8.self))"
            }
        } catch {
            lines = [error.description]
        }
        #expect(lines == expected)
    }

    @Test func `an explanation shows the last message`() throws {
        let profile = try DeclarativeText.compile(Self.profile(Self.counted))
        let explanation = try #require(
            ProfileTools.explain([[0xDD, 0], [1, 5], [9]], characteristic: 0, of: profile)
        )
        #expect(explanation.payload == [0xDD, 0, 1, 5, 9])
        #expect(explanation.rows.map(\.octets) == [0..<3, 3..<4])
        #expect(explanation.leftOver == 4..<5)
        let partial = try #require(ProfileTools.explain([[0xDD, 0]], characteristic: 0, of: profile))
        #expect(partial.rows.isEmpty && partial.rejection != nil)
    }

    @Test func `tests of a profile have notifications`() throws {
        let tests = """
            tests:
                  - {hex: [DD 00 00, '05'], expect: {level: 5}}
                  - {hex: DD 00 00, reject: incomplete}
            """
        let profile = try DeclarativeText.compile(Self.profile("\(Self.counted)\n    \(tests)"))
        #expect(ProfileTools.runVectors(of: profile).map(\.failure) == [nil, nil])
    }

    // MARK: - Keys for such devices

    @Test(
        arguments: [
            ("{metric: cell, type: u16be, repeat: rest, omit: 0}", "0CC1 0000 0CC2", ["cell 3265", "cell 3266"]),
            ("{metric: cell, type: i16be, repeat: rest, omit: -2000, scale: 0.1}", "F830 0001", ["cell 0.1"]),
            ("{metric: cell, type: u8, repeat: 2, omit: 0xFF}", "FF FF", []),
        ]
    )
    func `elements of a list are left out`(field: String, hex: String, expected: [String]) throws {
        #expect(try DeclarativeText.decode(hex.replacing(" ", with: ""), fields: field) == expected)
    }

    @Test(
        arguments: [
            ("{metric: x, type: u8, omit: 0}", "'omit' is for lists of integers"),
            ("{metric: x, type: f32, repeat: 2, omit: 0}", "'omit' is for lists of integers"),
            ("{metric: x, type: u8, repeat: 2, omit: 256}", "'256' is invalid; expected an integer from 0 to 255"),
        ]
    )
    func `the key omit is for lists of integers, within their range`(field: String, reason: String) throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [field]))
        #expect(errors.contains { $0.contains(reason) }, "\(errors)")
    }

    @Test func `a checksum can be the negative of a sum`() throws {
        let check = "    check: {kind: sum16, init: 0xFFFF, xor: 0xFFFF, order: be}"
        let text = DeclarativeText.profile(fields: ["{metric: x, type: u8}"], more: check)
        let profile = try DeclarativeText.compile(text)
        #expect(try DeclarativeText.decode("0300FFFD", by: profile) == ["x 3"])
        #expect(try DeclarativeText.decode("0300FFFC", by: profile) == ["its checksum is 0xFFFC instead of 0xFFFD"])
    }
}
