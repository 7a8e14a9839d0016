import GattherdInflux
import GattherdModel
import Testing

struct PointWriterTests {
    private func text(
        _ reading: JournalReading,
        _ measurement: MeasurementName = .stream,
        gateway: String = "lab"
    ) -> String? {
        var writer = PointWriter(gateway: gateway, measurement: measurement)
        var bytes: [UInt8] = []
        return writer.write(reading, to: &bytes) ? String(decoding: bytes, as: UTF8.self) : nil
    }

    private func points(_ reading: JournalReading) throws -> [ParsedPoint] {
        try ParsedPoint.parse(Array(text(reading).map { $0.utf8 } ?? "".utf8))
    }

    /// A stream with one metric.
    private func stream(
        metric: String,
        device: String = "d",
        profile: String = "p",
        stream: String = "s"
    ) -> StreamDefinition {
        StreamDefinition(device: device, profile: profile, stream: stream, metrics: [MetricDescriptor(name: metric)])
    }

    @Test func `a reading is one point with a field for each metric`() {
        let reading = Readings.reading((0, .integer(72)), (1, .boolean(true)), (3, .text("rest")))
        #expect(
            text(reading) == """
                heart_rate,device=strap,gateway=lab,profile=heart-rate,source=notify \
                bpm=72,contact=1,mode_text="rest" 1795231205123456042

                """
        )
    }

    @Test func `each value of a repeated metric is a point of its own`() {
        let reading = Readings.reading((0, .integer(72)), (2, .real(812.5)), (2, .null), (2, .real(799)))
        let tags = "gateway=lab,profile=heart-rate,source=notify"
        #expect(
            text(reading) == """
                heart_rate,device=strap,element=0,\(tags) rr_interval=812.5 1795231205123456042
                heart_rate,device=strap,element=2,\(tags) rr_interval=799.0 1795231205123456042
                heart_rate,device=strap,\(tags) bpm=72 1795231205123456042

                """
        )
    }

    @Test func `a reading of unknown values only has no point`() {
        #expect(text(Readings.reading((0, .null), (1, .null))) == "")
        #expect(text(Readings.reading((0, .real(.nan)), (1, .real(.infinity)))) == "")
        #expect(text(Readings.reading((99, .integer(1)))) == "")
    }

    @Test func `the first of several values of a metric counts unless it is repeated`() throws {
        let point = try #require(try points(Readings.reading((0, .integer(1)), (0, .integer(2)))).first)
        #expect(point.fields == ["bpm": .float(1)])
    }

    @Test func `a field has the same type for every value`() throws {
        let numbers: [SampleValue] = [
            .integer(0), .integer(.max), .integer(.min), .real(0.5), .real(-0.0), .boolean(true),
        ]
        for value in numbers {
            let point = try #require(try points(Readings.reading((0, value))).first)
            guard case .float = point.fields["bpm"] else {
                Issue.record("\(value) is no float: \(point)")
                continue
            }
        }
        let point = try #require(try points(Readings.reading((0, .text("72")))).first)
        #expect(point.fields == ["bpm_text": .text("72")])
    }

    @Test func `numbers are written with all digits`() throws {
        for number in [0.1, 1e-300, .leastNonzeroMagnitude, 1.7976931348623157e308, -123_456.789, 1e16, 0.6826171875] {
            let point = try #require(try points(Readings.reading((0, .real(number)))).first)
            #expect(point.fields == ["bpm": .float(number)])
        }
        #expect(text(Readings.reading((0, .integer(.max))))?.contains(" bpm=9223372036854775807 ") == true)
    }

    @Test func `no two metrics share a field, and no field has the name of a tag`() {
        let names = [
            "time", "time_", "device", "element", "gateway", "profile", "source", "stream", "source_", "mode",
            "mode_", "mode_text", "mode_text_", "mode_text_text", "_", "__", "text", "_text",
        ]
        var fields: Set<String> = []
        for name in names {
            for value in [SampleValue.integer(1), .text("x")] {
                let text = text(Readings.reading((0, value), of: stream(metric: name))) ?? ""
                let field = String(text.split(separator: " ")[1].prefix { $0 != "=" })
                #expect(fields.insert(field).inserted, "\(name) \(value) is \(field)")
            }
        }
        #expect(fields.isDisjoint(with: ["time", "device", "element", "gateway", "profile", "source", "stream"]))
        #expect(fields.contains("mode") && fields.contains("mode_text") && fields.contains("time_"))
    }

    @Test func `readings of one stream at the same microsecond are different points`() throws {
        let times = try (Int64(1)...1000).map { seq in
            try #require(try points(Readings.reading((0, .integer(1)), seq: seq)).first).time
        }
        #expect(Set(times).count == 1000)
        #expect(times.allSatisfy { $0 / 1000 == Readings.time.microseconds })
    }

    @Test func `the same reading is always the same point`() {
        let reading = Readings.reading((0, .integer(72)), seq: 987_654_321)
        #expect(text(reading) == text(reading))
        #expect(text(reading)?.hasSuffix(" 1795231205123456321\n") == true)
    }

    @Test func `times out of the range of nanoseconds are refused`() {
        func time(_ microseconds: Int64) -> JournalReading {
            Readings.reading((0, .integer(1)), time: Timestamp(microseconds: microseconds))
        }
        #expect(text(time(9_223_372_036_854_774))?.hasSuffix(" 9223372036854774042\n") == true)
        #expect(text(time(-9_223_372_036_854_775)) != nil)
        #expect(text(time(0))?.hasSuffix(" 42\n") == true)
        #expect(text(time(-1))?.hasSuffix(" -958\n") == true)
        for microseconds: Int64 in [9_223_372_036_854_776, -9_223_372_036_854_776, .max, .min] {
            #expect(text(time(microseconds)) == nil)
        }
    }

    @Test func `special characters in names, tags and values are read back unchanged`() throws {
        for special in [",", " ", "=", "\"", "'", "#", ",= ", "é", "🚲", "\\"] {
            let name = "#\(special)a\(special)b\(special)"
            let kept = name.replacing("\\", with: "/").replacing("\"", with: "'")
            let stream = stream(metric: name, device: name, profile: name, stream: name)
            let reading = Readings.reading((0, .text(name)), of: stream)
            let all = try ParsedPoint.parse(Array((text(reading, gateway: name) ?? "").utf8))
            let point = try #require(all.first)
            #expect(all.count == 1)
            #expect(point.measurement == kept)
            #expect(point.tags == ["device": kept, "gateway": kept, "profile": kept, "source": "notify"])
            #expect(point.fields == [kept + "_text": .text(name)])
        }
    }

    @Test func `control characters become spaces`() throws {
        let text = "a\nb\rc\u{0}d\te"
        let point = try #require(
            try points(Readings.reading((0, .text(text)), of: stream(metric: "m", stream: text))).first
        )
        #expect(point.measurement == "a b c d e")
        #expect(point.fields == ["m_text": .text("a b c d e")])
    }

    @Test func `random readings are parsed as they were`() throws {
        let alphabet = Array("ab ,=\"'#{}\u{301}ü\t\n")
        func word() -> String { String((0...Int.random(in: 1...9)).map { _ in alphabet.randomElement() ?? "a" }) }
        for _ in 0..<2000 {
            let (metric, text) = ("m" + word(), word())
            let stream = stream(metric: metric, device: "d" + word(), profile: "p" + word(), stream: "s" + word())
            let number = Double(bitPattern: .random(in: 0...UInt64.max))
            let value: SampleValue = Bool.random() ? .text(text) : .real(number)
            let seq = Int64.random(in: 1...Int64.max)
            let reading = Readings.reading((0, value), seq: seq, of: stream)
            let all = try points(reading)
            guard value == .text(text) || number.isFinite else {
                #expect(all.isEmpty)
                continue
            }
            let point = try #require(all.first)
            let plain = { (text: String) in
                String(decoding: text.utf8.map { $0 < 0x20 ? 0x20 : $0 }, as: UTF8.self)
            }
            #expect(point.measurement == plain(stream.stream).replacing("\"", with: "'"))
            #expect(point.tags["device"] == plain(stream.device).replacing("\"", with: "'"))
            #expect(Array(point.fields.values) == [value == .text(text) ? .text(plain(text)) : .float(number)])
            #expect(point.time == Readings.time.microseconds * 1000 + seq % 1000)
        }
    }
}

struct MeasurementNameTests {
    private func name(_ text: String) -> String? { MeasurementName(text)?.name(for: Readings.strap) }

    @Test func `placeholders are replaced`() {
        #expect(name("{stream}") == "heart_rate")
        #expect(name("ble_{device}.{profile}.{stream}!") == "ble_strap.heart-rate.heart_rate!")
        #expect(name("gattherd") == "gattherd")
    }

    @Test func `unknown placeholders, lone braces and reserved names are refused`() {
        for text in ["", "{metric}", "{", "}", "a}", "{stream", "{}", "a{{stream}}", "_internal", "a\nb"] {
            #expect(MeasurementName(text) == nil, "\(text)")
        }
        #expect(MeasurementName(String(repeating: "x", count: 257)) == nil)
    }

    @Test func `streams that share a measurement are distinguished by a tag`() throws {
        var writer = PointWriter(gateway: "lab", measurement: try #require(MeasurementName("ble")))
        var bytes: [UInt8] = []
        #expect(writer.write(Readings.reading((0, .integer(1))), to: &bytes))
        let point = try #require(try ParsedPoint.parse(bytes).first)
        #expect(point.measurement == "ble")
        #expect(point.tags["stream"] == "heart_rate")
    }
}
