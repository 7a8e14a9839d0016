package import GattherdGATT

extension ArraySlice<Sample> {
    /// Checks that a stream with `metrics` has those of its samples.
    ///
    /// - Throws: ``GattherdGATT/PayloadError`` with the first metric that the stream lacks.
    package func check(of metrics: [MetricDescriptor]) throws(PayloadError) {
        guard let stray = first(where: { !metrics.indices.contains($0.metric) }) else { return }
        throw .invalid(reason: "its decoder gave metric \(stray.metric), and the stream has \(metrics.count)")
    }
}
