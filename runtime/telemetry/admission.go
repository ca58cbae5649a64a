package telemetry

// Admission is how long offers took, over the present attempts of all readers.
func (r *Registry) Admission() Distribution {
	r.mu.Lock()
	defer r.mu.Unlock()
	var d Distribution
	for _, reader := range r.mu.readers {
		d.add(&reader.Admission)
	}
	return d
}
