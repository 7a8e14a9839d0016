import GattherdModel

/// Builds a decoding program from presentation formats.
struct ProgramBuilder {
    private var program = DecodeProgramDraft()
    private var names = FieldNames()
    private(set) var metrics: [MetricDescriptor] = []

    mutating func add(_ format: PresentationFormat, name: String) {
        let conversion = conversion(of: format, name: name)
        let kind: MetricKind
        switch format.layout {
        case .field(let type):
            kind = type.isNumber ? .gauge : .state
            var step = DecodeProgram.Step(.read(type), conversion: program.add(conversion))
            step.metric = metrics.count
            program.add(step)
        case .bits(let width, let type, let isSigned):
            kind = .gauge
            var step = DecodeProgram.Step(.read(type), conversion: program.add(Conversion(name: name)))
            let register = names.add("raw\(metrics.count)", bits: Int64(8 * (type.width ?? 0)))
            step.register = register
            program.add(step)
            let part = ExpressionNodes.Part(register: register, shift: 0, width: width, isSigned: isSigned)
            let expression = program.expressions.add(.part(part))
            var value = DecodeProgram.Step(
                .compute(expression, isBoolean: false),
                conversion: program.add(conversion)
            )
            value.metric = metrics.count
            program.add(value)
        }
        metrics.append(MetricDescriptor(name: name, unit: format.unit, kind: kind))
    }

    /// Returns the program, which rejects payloads of the wrong length.
    mutating func finished(_ formats: [PresentationFormat]) -> DecodeProgram {
        let widths = formats.compactMap(\.width)
        if widths.count == formats.count {
            let octets = widths.reduce(0, +)
            program.length = .octets(octets...octets)
        }
        program.registerCount = names.count
        return DecodeProgram(program)
    }

    private func conversion(of format: PresentationFormat, name: String) -> Conversion {
        guard format.exponent != 0, let power = Rational.power(abs(format.exponent)) else {
            return Conversion(name: name)
        }
        let scale = format.exponent > 0 ? Rational(whole: power) : Rational(whole: power).inverse
        return Conversion(name: name, scale: Scale(scale: scale, offset: .zero) ?? .identity)
    }
}
